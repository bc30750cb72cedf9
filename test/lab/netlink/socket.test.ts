import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseIp } from '../../../src/core/index.ts';
import { Netlink, type NetlinkRequest } from '../../../src/netlink/index.ts';
import { getLink, listAddresses, listLinks, newAddress } from '../../../src/netlink/route/index.ts';
import { RTM_GETLINK } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { openIn } from './witness.ts';

let namespace: TestNamespace;

beforeAll(() => {
  namespace = createNamespace('socket');
});

afterAll(removeAll);

const refused = (message: string) =>
  expect.objectContaining({ code: 'ERR_NETLINK_SOCKET', message: expect.stringContaining(message) });

const silent: NetlinkRequest = {
  type: 1,
  flags: 0,
  operation: 'NLMSG_NOOP',
  object: 'nothing',
  payload: new Uint8Array(),
};

describe('a netlink socket', () => {
  it('stays in the namespace it was opened in', () => {
    const netlink = openIn(namespace);
    expect(listLinks(netlink).map((link) => link.name)).toEqual(['lo']);
    netlink.close();
  });

  it('says so when no answer comes', () => {
    const netlink = inNetns(namespace.path, () => Netlink.openRoute({ timeoutMs: 20 }));
    // The kernel skips control messages, and answers nothing unless asked to acknowledge.
    expect(() => netlink.query(silent)).toThrow(refused('none came within 20 ms'));
    expect(getLink(netlink, { index: 1 })?.name).toBe('lo');
    netlink.close();
  });

  it('reports answers dropped for lack of room, and goes on', () => {
    const netlink = inNetns(namespace.path, () => Netlink.openRoute({ bufferBytes: 40_000 }));
    const address = (i: number) =>
      newAddress({ index: 1, address: parseIp(`10.0.${i >> 8}.${i & 0xff}`), prefixLength: 32 });
    const addresses = Array.from({ length: 400 }, (_, i) => address(i));
    // What the kernel does is acknowledged once for all of them; what it refuses is told one by one.
    netlink.execute(...addresses);
    expect(() => netlink.execute(...addresses)).toThrow(refused('ENOBUFS'));
    // The late answers are not taken for the next one's.
    expect(listAddresses(netlink, { index: 1 })).toHaveLength(400);
    expect(() => netlink.execute(address(7))).toThrow(/EEXIST/);
    netlink.close();
  });

  it('refuses a datagram larger than its send queue', () => {
    const netlink = inNetns(namespace.path, () => Netlink.openRoute({ bufferBytes: 10_000 }));
    const request = { ...silent, type: RTM_GETLINK, payload: new Uint8Array(100_000) };
    expect(() => netlink.execute(request)).toThrow(refused('Cannot send 100016 bytes over netlink'));
    netlink.close();
  });

  it('takes datagrams larger than its buffer whole', () => {
    const small = inNetns(namespace.path, () => Netlink.openRoute({ readBytes: 100 }));
    const large = inNetns(namespace.path, () => Netlink.openRoute());
    const addresses = Array.from({ length: 200 }, (_, i) =>
      newAddress({ index: 1, address: parseIp(`10.9.0.${i}`), prefixLength: 32 }),
    );
    small.execute(...addresses);
    expect(getLink(small, { index: 1 })).toEqual(getLink(large, { index: 1 }));
    const listed = listAddresses(small);
    expect(listed).toEqual(listAddresses(large));
    expect(listed.length).toBeGreaterThanOrEqual(200);
    small.close();
    large.close();
  });

  it('is given back, once', () => {
    const open = () =>
      inNetns(namespace.path, () => readFileSync('/proc/thread-self/net/netlink', 'utf8').split('\n').length);
    const before = open();
    const netlink = openIn(namespace);
    expect(open()).toBe(before + 1);
    netlink.close();
    netlink.close();
    expect(open()).toBe(before);
    expect(() => Netlink.open(99)).toThrow(refused('Cannot open a netlink socket of protocol 99'));
  });
});

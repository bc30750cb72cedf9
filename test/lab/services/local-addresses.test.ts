import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { localAddresses, ownSource } from '../../../src/agent/index.ts';
import { formatIp } from '../../../src/core/index.ts';
import { Netlink } from '../../../src/netlink/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';

let namespace: TestNamespace;
const ip = (...args: string[]) => namespace.run('ip', ...args);
const listed = () => {
  const { all, own } = inNetns(namespace.path, localAddresses);
  return { all: all.map(formatIp).sort(), own: own.map(formatIp).sort() };
};

beforeAll(() => {
  namespace = createNamespace('node');
  ip('link', 'add', 'eth0', 'type', 'bridge');
  ip('address', 'add', '192.168.50.1/24', 'dev', 'eth0');
  ip('address', 'add', 'fd00:50::1/64', 'dev', 'eth0', 'nodad');
  ip('address', 'add', '192.168.50.9/32', 'dev', 'lo');
});
afterAll(removeAll);

const ADDRESSES = { all: ['192.168.50.1', '192.168.50.9', 'fd00:50::1'], own: ['192.168.50.1', 'fd00:50::1'] };

it('tells the addresses of all links, also of one without a carrier, and which of them are the node’s own', () => {
  expect(listed()).toEqual(ADDRESSES);
});

it('takes none of kube-ipvs0, which Services have, for one of the node', () => {
  // Of another kind than the real one, which not every kernel has: the name counts.
  ip('link', 'add', 'kube-ipvs0', 'type', 'bridge');
  for (const address of ['192.168.50.200/32', '192.168.50.201/24']) ip('address', 'add', address, 'dev', 'kube-ipvs0');
  ip('address', 'add', 'fd00:50::200/128', 'dev', 'kube-ipvs0', 'nodad');
  expect(listed()).toEqual(ADDRESSES);
});

it('asks about no link by netlink, which waits for the lock of all links', () => {
  const exchange = vi.spyOn(Netlink.prototype, 'exchange');
  const query = vi.spyOn(Netlink.prototype, 'query');
  const dump = vi.spyOn(Netlink.prototype, 'dumpChanging');
  expect(listed()).toEqual(ADDRESSES);
  expect([...exchange.mock.calls, ...query.mock.calls]).toEqual([]);
  expect(dump.mock.calls.map(([{ operation }]) => operation)).toEqual(['RTM_GETADDR']);
});

it('tells by which address others are reached, where a default route leads to them', () => {
  const source = (family: 'IPv4' | 'IPv6') => inNetns(namespace.path, () => ownSource(family));
  expect([source('IPv4'), source('IPv6')]).toEqual([undefined, undefined]);
  ip('link', 'set', 'eth0', 'up');
  ip('address', 'add', '192.168.51.7/24', 'dev', 'eth0');
  ip('route', 'add', 'default', 'via', '192.168.51.1');
  expect(formatIp(source('IPv4')!)).toBe('192.168.51.7');
  expect(source('IPv6')).toBeUndefined();
});

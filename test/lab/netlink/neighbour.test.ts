import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isExists, isNotFound, parseIp } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import { deleteNeighbour, getLink, listNeighbours, newBridge, newNeighbour } from '../../../src/netlink/route/index.ts';
import { NTF_MASTER, NTF_PROXY, NTF_SELF, NUD_NOARP, NUD_PERMANENT } from '../../../src/netlink/uapi/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac, openIn, witness } from './witness.ts';

let node: TestNamespace;
let netlink: Netlink;
let bridge: number;

beforeEach(() => {
  node = createNamespace('neighbour');
  netlink = openIn(node);
  netlink.execute(newBridge({ name: 'cni0', mac: mac(1).bytes, up: true }));
  bridge = getLink(netlink, { name: 'cni0' })!.index;
  return () => {
    netlink.close();
    removeAll();
  };
});

afterAll(removeAll);

describe('neighbours', () => {
  it('of both families are added, replaced, listed and deleted', () => {
    const [ipv4, ipv6] = [parseIp('10.1.0.9'), parseIp('fd00::9')];
    netlink.execute(
      newNeighbour({ index: bridge, ip: ipv4, lladdr: mac(9).bytes }),
      newNeighbour({ index: bridge, ip: ipv6, lladdr: mac(9).bytes }),
    );
    expect(witness(node, 'ip', '-4', 'neigh')).toEqual([
      expect.objectContaining({ dst: '10.1.0.9', dev: 'cni0', lladdr: mac(9).text, state: ['PERMANENT'] }),
    ]);
    expect(() => netlink.execute(newNeighbour({ index: bridge, ip: ipv4, lladdr: mac(8).bytes }))).toThrow(
      expect.toSatisfy(isExists),
    );
    netlink.execute(newNeighbour({ index: bridge, ip: ipv6, lladdr: mac(8).bytes, replace: true }));
    const listed = listNeighbours(netlink, { index: bridge }).filter((n) => n.state === NUD_PERMANENT);
    expect(listed.map(({ family, ip, lladdr }) => [family, ip, [...lladdr]])).toEqual([
      ['IPv4', ipv4, [...mac(9).bytes]],
      ['IPv6', ipv6, [...mac(8).bytes]],
    ]);
    netlink.execute(deleteNeighbour({ index: bridge, ip: ipv4 }), deleteNeighbour({ index: bridge, ip: ipv6 }));
    expect(witness(node, 'ip', 'neigh', 'show', 'nud', 'permanent')).toEqual([]);
    // The kernel keeps a deleted entry for a moment (NUD_FAILED); one that never was is not found.
    expect(() => netlink.execute(deleteNeighbour({ index: bridge, ip: parseIp('10.1.0.77') }))).toThrow(
      expect.toSatisfy(isNotFound),
    );
  });

  it('by proxy are listed apart', () => {
    const ip = parseIp('10.1.0.10');
    netlink.execute(newNeighbour({ index: bridge, ip, flags: NTF_PROXY }));
    expect(listNeighbours(netlink, { proxy: true, family: 'IPv4' })).toEqual([
      expect.objectContaining({ ip, index: bridge, flags: NTF_PROXY }),
    ]);
    // The kernel's own, for the multicast report (224.0.0.22) of a link that was switched on, may be there by now.
    const others = listNeighbours(netlink, { family: 'IPv4' }).filter(({ state }) => state !== NUD_NOARP);
    expect(others).toEqual([]);
    expect(witness(node, 'ip', 'neigh', 'show', 'proxy')).toEqual([expect.objectContaining({ dst: '10.1.0.10' })]);
  });
});

describe('the forwarding database', () => {
  it('of a bridge', () => {
    node.run('ip', 'link', 'add', 'port0', 'master', 'cni0', 'type', 'veth', 'peer', 'name', 'peer0');
    const port = getLink(netlink, { name: 'port0' })!.index;
    const entry = { index: port, family: 'bridge', lladdr: mac(7).bytes, flags: NTF_MASTER } as const;
    netlink.execute(newNeighbour({ ...entry, state: NUD_NOARP }));
    const seen = () => witness(node, 'bridge', 'fdb', 'show', 'dev', 'port0').filter((e) => e.mac === mac(7).text);
    expect(seen()).toEqual([expect.objectContaining({ master: 'cni0', state: 'static' })]);
    const listed = () => listNeighbours(netlink, { family: 'bridge', master: bridge }).filter((n) => n.lladdr[5] === 7);
    expect(listed()).toEqual([
      expect.objectContaining({ family: 'bridge', index: port, master: bridge, state: NUD_NOARP, ip: undefined }),
    ]);
    netlink.execute(deleteNeighbour(entry));
    expect([...seen(), ...listed()]).toEqual([]);
  });

  it('of a VXLAN device, one destination or several for a MAC', () => {
    node.run('ip', 'link', 'add', 'vx0', 'type', 'vxlan', 'id', '1', 'dstport', '4789', 'dev', 'cni0', 'nolearning');
    const { index } = getLink(netlink, { name: 'vx0' })!;
    const one = { index, family: 'bridge', lladdr: mac(7).bytes, ip: parseIp('10.0.0.7'), replace: true } as const;
    const flood = { index, family: 'bridge', lladdr: new Uint8Array(6) } as const;
    netlink.execute(newNeighbour(one), newNeighbour({ ...one, ip: parseIp('10.0.0.8') }));
    for (const ip of ['10.0.0.7', '10.0.0.8']) {
      node.run('bridge', 'fdb', 'append', '00:00:00:00:00:00', 'dev', 'vx0', 'dst', ip);
    }
    const entries = listNeighbours(netlink, { family: 'bridge', index });
    expect(
      entries.map(({ lladdr, ip, flags }) => [lladdr[5], ip, flags]).sort((a, b) => Number(a[0]) - Number(b[0])),
    ).toEqual([
      [0, parseIp('10.0.0.7'), NTF_SELF],
      [0, parseIp('10.0.0.8'), NTF_SELF],
      [7, parseIp('10.0.0.8'), NTF_SELF],
    ]);
    const seen = () =>
      witness(node, 'bridge', 'fdb', 'show', 'dev', 'vx0')
        .map((e) => `${e.mac} ${e.dst}`)
        .sort();
    expect(seen()).toEqual(['00:00:00:00:00:00 10.0.0.7', '00:00:00:00:00:00 10.0.0.8', `${mac(7).text} 10.0.0.8`]);
    netlink.execute(
      deleteNeighbour({ ...flood, ip: parseIp('10.0.0.7') }),
      deleteNeighbour({ ...one, ip: parseIp('10.0.0.8') }),
    );
    expect(seen()).toEqual(['00:00:00:00:00:00 10.0.0.8']);
  });
});

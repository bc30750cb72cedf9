import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { isExists, isNotFound, parseAddressWithPrefix, parseIp } from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import {
  deleteLink,
  deleteNeighbour,
  getLink,
  listLinks,
  listNeighbours,
  newAddress,
  newBridge,
  newNeighbour,
  newVxlan,
  setLink,
  setVxlan,
  type VxlanSpec,
} from '../../../src/netlink/route/index.ts';
import { NUD_PERMANENT } from '../../../src/netlink/uapi/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac, openIn, witness } from './witness.ts';

let node: TestNamespace;
let netlink: Netlink;
let link: number;

beforeEach(() => {
  node = createNamespace('vxlan');
  netlink = openIn(node);
  netlink.execute(newBridge({ name: 'eth0', mac: mac(1).bytes, up: true }));
  link = getLink(netlink, { name: 'eth0' })!.index;
  netlink.execute(
    ...['192.0.2.1/24', '192.0.2.9/24', 'fd00::1/64'].map((text) =>
      newAddress({ index: link, ...parseAddressWithPrefix(text) }),
    ),
  );
  return () => {
    netlink.close();
    removeAll();
  };
});

afterAll(removeAll);

const device = (change: Partial<VxlanSpec> = {}): VxlanSpec => ({
  name: 'vx0',
  mac: mac(7).bytes,
  vni: 4096,
  port: 4789,
  link,
  local: parseIp('192.0.2.1'),
  ...change,
});
const refusalOf = (...requests: Parameters<Netlink['attempt']>[0]) => netlink.attempt(requests).at(-1);
const infoData = (name: string) => witness(node, 'ip', 'link', 'show', name)[0].linkinfo.info_data;

describe('VXLAN devices', () => {
  it('are made as asked for, and read back as iproute2 sees them', () => {
    netlink.execute(newVxlan(device({ ttl: 64, mtu: 1400, up: true })));
    const [seen] = witness(node, 'ip', 'link', 'show', 'vx0');
    expect(seen).toMatchObject({ mtu: 1400, address: mac(7).text, flags: expect.arrayContaining(['UP']) });
    expect(seen.linkinfo.info_data).toMatchObject({
      id: 4096,
      link: 'eth0',
      local: '192.0.2.1',
      port: 4789,
      learning: false,
      ttl: 64,
      udp_csum: true,
    });
    const vx0 = getLink(netlink, { name: 'vx0' })!;
    expect([vx0.kind, vx0.mtu, [...vx0.address]]).toEqual(['vxlan', 1400, [...mac(7).bytes]]);
    expect(vx0.vxlan).toMatchObject({
      vni: 4096,
      port: 4789,
      link,
      local: parseIp('192.0.2.1'),
      remote: undefined,
      learning: false,
      ttl: 64,
      groupPolicy: false,
      metadata: false,
    });
  });

  it('over IPv6 have less room', () => {
    const local = parseIp('fd00::1');
    netlink.execute(newVxlan(device({ local })), newVxlan(device({ name: 'vx1', vni: 4097 })));
    expect(getLink(netlink, { name: 'vx0' })).toMatchObject({
      mtu: 1430,
      vxlan: { local },
    });
    expect(getLink(netlink, { name: 'vx1' })).toMatchObject({ mtu: 1450 });
    // More at the creation is lowered in silence, later it is refused.
    netlink.execute(newVxlan(device({ name: 'vx2', vni: 5, local, mtu: 1450 })));
    expect(getLink(netlink, { name: 'vx2' })).toMatchObject({ mtu: 1430 });
    expect(String(refusalOf(setLink({ name: 'vx2' }, { mtu: 1450 })))).toContain('EINVAL');
  });

  it('are changed in place as far as the kernel allows', () => {
    netlink.execute(newVxlan(device()));
    const { index } = getLink(netlink, { name: 'vx0' })!;
    const local = parseIp('192.0.2.9');
    netlink.execute(setVxlan(index, { local, ttl: 9, learning: true, link }));
    expect(infoData('vx0')).toMatchObject({
      local: '192.0.2.9',
      ttl: 9,
      learning: true,
      id: 4096,
      port: 4789,
    });
    expect(getLink(netlink, { index })?.vxlan).toMatchObject({
      local,
      ttl: 9,
      learning: true,
      link,
    });
    netlink.execute(setVxlan(index, { learning: false }), setLink(index, { mtu: 1300, mac: mac(8).bytes }));
    expect(getLink(netlink, { index })).toMatchObject({ mtu: 1300, vxlan: { local, ttl: 9, learning: false } });
    expect(String(refusalOf(setVxlan(index, { local: parseIp('fd00::1') })))).toContain('RTM_NEWLINK VXLAN device');
    expect(isNotFound(refusalOf(setVxlan(999, { ttl: 1 })))).toBe(true);
  });

  it('of somebody else with our name or number are told apart', () => {
    node.run('ip', 'link', 'add', 'vx0', 'type', 'vxlan', 'external', 'dstport', '4790');
    node.run(
      'ip',
      'link',
      'add',
      'gb',
      'type',
      'vxlan',
      'id',
      '5',
      'group',
      '239.1.1.1',
      'dev',
      'eth0',
      'dstport',
      '1',
      'gbp',
    );
    node.run('ip', 'link', 'add', 'theirs', 'type', 'vxlan', 'id', '4096', 'dev', 'eth0', 'dstport', '4789');
    expect(isExists(refusalOf(newVxlan(device())))).toBe(true);
    const taken = refusalOf(newVxlan(device({ name: 'vx1' })));
    expect(isExists(taken)).toBe(true);
    expect(String(taken)).toContain('VXLAN 4096 at port 4789 "vx1"');
    const found = listLinks(netlink).flatMap(({ name, vxlan }) => (vxlan ? [[name, vxlan] as const] : []));
    expect(Object.fromEntries(found)).toMatchObject({
      vx0: { metadata: true, port: 4790 },
      gb: { vni: 5, groupPolicy: true, remote: parseIp('239.1.1.1') },
      theirs: { vni: 4096, port: 4789, link, learning: true, local: undefined },
    });
    netlink.execute(deleteLink({ name: 'theirs' }), newVxlan(device({ name: 'vx1' })));
  });
});

it('peers are an FDB entry and a neighbour each, over both families', () => {
  netlink.execute(newVxlan(device({ local: parseIp('fd00::1'), up: true })));
  const { index } = getLink(netlink, { name: 'vx0' })!;
  const fdb = (last: number, tunnelEnd: string) =>
    ({ index, family: 'bridge', lladdr: mac(last).bytes, ip: parseIp(tunnelEnd), replace: true }) as const;
  const neighbour = (ip: string, last: number) => ({ index, ip: parseIp(ip), lladdr: mac(last).bytes, replace: true });
  const peer = [fdb(2, 'fd00::2'), neighbour('10.244.2.0', 2), neighbour('fd02::', 2)];
  netlink.execute(...peer.map(newNeighbour));
  // The same again changes nothing, and a peer that moved takes its entry along.
  netlink.execute(...peer.map(newNeighbour), newNeighbour(fdb(2, 'fd00::3')));
  expect(witness(node, 'bridge', 'fdb', 'show', 'dev', 'vx0').map((e) => [e.mac, e.dst, e.state])).toEqual([
    [mac(2).text, 'fd00::3', 'permanent'],
  ]);
  const listed = (family?: 'bridge') =>
    listNeighbours(netlink, { family, index })
      .filter(({ state }) => state === NUD_PERMANENT)
      .map(({ ip, lladdr }) => [ip, lladdr[5]]);
  expect(listed('bridge')).toEqual([[parseIp('fd00::3'), 2]]);
  expect(listed()).toEqual([
    [parseIp('10.244.2.0'), 2],
    [parseIp('fd02::'), 2],
  ]);
  netlink.execute(
    deleteNeighbour({ index, family: 'bridge', lladdr: mac(2).bytes }),
    deleteNeighbour({ index, ip: parseIp('10.244.2.0') }),
    deleteNeighbour({ index, ip: parseIp('fd02::') }),
  );
  expect([listed('bridge'), listed()]).toEqual([[], []]);
});

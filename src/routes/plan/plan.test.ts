import { describe, expect, it } from 'vitest';
import { nodeObject, numberedNode } from '../../../test/fakes/routes/node-objects.ts';
import { formatMac, parseAddressWithPrefix, parseCidr, parseIp } from '../../core/index.ts';
import { DEVICE_ALIAS, type PresentDevice } from '../kernel/route-kernel.ts';
import { diffDevice } from './device-diff.ts';
import { tryParseMac, vtepMac } from './mac.ts';
import { readPeer } from './peer.ts';
import { type RouteSettings, tunnelDevice } from './tunnel.ts';
import { isOnLink, type Underlay } from './underlay.ts';

const underlayOf = (cidr: string, mtu = 1500, routed: readonly string[] = []): Underlay => ({
  index: 2,
  name: 'eth0',
  mtu,
  address: parseAddressWithPrefix(cidr).address,
  prefixes: [parseAddressWithPrefix(cidr)],
  routed: routed.map(parseCidr),
});
const SETTINGS: RouteSettings = { mode: 'auto', vni: 1, port: 8472, mtu: undefined };
const mac = vtepMac('a', 1, 'IPv4');

describe('a node', () => {
  it('is on the link when a prefix has it and no route leads around', () => {
    const underlay = underlayOf('10.0.0.1/24', 1500, ['10.0.0.128/25']);
    const addresses = ['10.0.0.2', '10.0.0.129', '10.0.1.2', 'fd00::1'].map(parseIp);
    expect(addresses.map((address) => isOnLink(address, underlay))).toEqual([true, false, false, false]);
    expect(isOnLink(parseIp('10.0.0.2'), underlayOf('10.0.0.1/32'))).toBe(false);
  });

  it.each([
    [{ ips: ['127.0.0.1'] }, 'its address 127.0.0.1 is loopback'],
    [{ podCidrs: ['10.1.0.0/24', '10.1.0.0/25'] }, 'its pod CIDRs 10.1.0.0/24 and 10.1.0.0/25 overlap'],
    [{ podCidrs: ['10.1.0.7/32'] }, 'its pod CIDR 10.1.0.7/32 has room for no pod'],
    [
      { podCidrs: Array.from({ length: 300 }, (_, n) => `10.1.${n % 256}.0/24`) },
      'it has 300 pod CIDRs, more than 256',
    ],
  ])('with %j cannot be used', (change, problem) => {
    expect(readPeer(numberedNode(2, change), 'IPv4', 1)).toEqual({ problem });
  });

  it('without pods of the family is none', () => {
    expect(readPeer(numberedNode(2, { podCidrs: ['fd00:1::/64', 'nonsense'] }), 'IPv4', 1)).toBeUndefined();
  });

  it('of flannel has the MAC and address flannel tells, in the same VXLAN network alone', () => {
    const annotations = {
      'flannel.alpha.coreos.com/kube-subnet-manager': 'true',
      'flannel.alpha.coreos.com/backend-type': 'vxlan',
      'flannel.alpha.coreos.com/backend-data': '{"VNI":1,"VtepMAC":"12:c6:65:89:b4:e3"}',
      'flannel.alpha.coreos.com/public-ip': '10.0.0.99',
    };
    const node = nodeObject({ name: 'f', ips: ['10.0.0.9'], podCidrs: ['10.1.0.0/24'], annotations });
    expect(readPeer(node, 'IPv4', 1)).toMatchObject({
      peer: { address: parseIp('10.0.0.99'), mac: tryParseMac('12:c6:65:89:b4:e3') },
    });
    expect(readPeer(node, 'IPv4', 2)).toEqual({
      problem: 'flannel uses VXLAN network 1 on it, this node 2: set --routes-vni to the same',
    });
    // What is said about ourselves may be of before: of flannel, another network, or another address.
    const own = { ranges: [], address: undefined };
    const here = { address: parseIp('10.0.0.9') };
    expect(readPeer(node, 'IPv4', 1, own)).toMatchObject({
      peer: { ...here, mac: tryParseMac('12:c6:65:89:b4:e3') },
    });
    expect(readPeer(node, 'IPv4', 2, own)).toMatchObject({ peer: { ...here, mac: vtepMac('f', 2, 'IPv4') } });
  });
});

it('a node of flannel’s host-gw is where flannel says, not where its Node object says', () => {
  const annotations = {
    'flannel.alpha.coreos.com/kube-subnet-manager': 'true',
    'flannel.alpha.coreos.com/backend-type': 'host-gw',
    'flannel.alpha.coreos.com/backend-data': 'null',
    'flannel.alpha.coreos.com/public-ip': '10.0.0.99',
  };
  const read = (change: Readonly<Record<string, string>>, own?: Parameters<typeof readPeer>[3]) => {
    const all = { ...annotations, ...change };
    return readPeer(
      nodeObject({ name: 'f', ips: ['10.0.0.9'], podCidrs: ['10.1.0.0/24'], annotations: all }),
      'IPv4',
      1,
      own,
    );
  };
  expect(read({})).toMatchObject({ peer: { address: parseIp('10.0.0.99') } });
  expect(read({ 'flannel.alpha.coreos.com/public-ip': 'nowhere' })).toEqual({
    problem: 'its annotation flannel.alpha.coreos.com/public-ip "nowhere" is no IPv4 address',
  });
  expect(read({ 'flannel.alpha.coreos.com/kube-subnet-manager': 'false' })).toMatchObject({
    peer: { address: parseIp('10.0.0.9') },
  });
  expect(read({}, { ranges: [], address: undefined })).toMatchObject({ peer: { address: parseIp('10.0.0.9') } });
});

it('the MAC of a node follows from its name, its network and its family, and is locally administered', () => {
  expect(formatMac(vtepMac('a', 1, 'IPv4'))).toBe(formatMac(mac));
  const others = [vtepMac('b', 1, 'IPv4'), vtepMac('a', 2, 'IPv4'), vtepMac('a', 1, 'IPv6')];
  expect(new Set([mac, ...others].map(formatMac)).size).toBe(4);
  expect([mac, ...others].map((one) => one[0]! & 3)).toEqual([2, 2, 2, 2]);
});

describe('the tunnel', () => {
  const mtuOf = (cidr: string, mtu: number, wanted?: number) =>
    tunnelDevice({ ...SETTINGS, mtu: wanted }, underlayOf(cidr, mtu), [parseCidr('10.1.0.0/24')], mac).mtu;

  it('carries what the underlay leaves: 50 bytes less in IPv4, 70 in IPv6', () => {
    expect([mtuOf('10.0.0.1/24', 1500), mtuOf('fd00::1/64', 1500), mtuOf('10.0.0.1/24', 9000)]).toEqual([
      1450, 1430, 8950,
    ]);
  });

  it('carries no more than is wanted, nor than is possible', () => {
    expect([mtuOf('10.0.0.1/24', 1500, 1400), mtuOf('10.0.0.1/24', 1500, 9000)]).toEqual([1400, 1450]);
  });

  it('is none where IPv6 does not fit', () => {
    expect(() => mtuOf('fd00::1/64', 1340)).toThrow('its MTU of 1340 leaves 1270 bytes, IPv6 needs 1280');
  });
});

describe('diffDevice', () => {
  const wanted = tunnelDevice(SETTINGS, underlayOf('10.0.0.1/24'), [parseCidr('10.1.0.0/24')], mac);
  const present: PresentDevice = {
    index: 7,
    name: 'nodeplane-v4',
    kind: 'vxlan',
    alias: DEVICE_ALIAS,
    up: true,
    mtu: 1450,
    mac,
    additions: [],
    vxlan: { vni: 1, port: 8472, link: 2, local: parseIp('10.0.0.1'), learning: false, ttl: 0 },
    addresses: [parseCidr('10.1.0.0/32')],
  };
  const actions = (change: Partial<PresentDevice>) =>
    diffDevice({ ...present, ...change }, wanted).map(({ action }) => action);

  it('leaves alone what is right', () => expect(actions({})).toEqual([]));

  it('makes anew what others added to', () => {
    expect(actions({ additions: ['tos 4'] })).toEqual(['delete', 'create']);
  });

  it('changes in place what can be changed', () => {
    expect(actions({ mtu: 1400 })).toEqual(['change']);
    expect(actions({ mac: Uint8Array.of(2, 0, 0, 0, 0, 1) })).toEqual(['change']);
    expect(actions({ vxlan: { ...present.vxlan!, local: parseIp('10.0.0.9') } })).toEqual(['change']);
    expect(actions({ vxlan: { ...present.vxlan!, learning: true } })).toEqual(['change']);
    expect(actions({ vxlan: { ...present.vxlan!, ttl: 1 } })).toEqual(['change']);
    expect(actions({ up: false, addresses: [parseCidr('10.9.0.0/32')] })).toEqual([
      'delete-address',
      'add-address',
      'up',
    ]);
  });

  it('makes anew what cannot', () => {
    expect(actions({ vxlan: { ...present.vxlan!, vni: 2 } })).toEqual(['delete', 'create']);
    expect(actions({ vxlan: { ...present.vxlan!, port: 4789 } })).toEqual(['delete', 'create']);
    expect(actions({ vxlan: { ...present.vxlan!, link: 3 } })).toEqual(['delete', 'create']);
  });

  it('touches no device of somebody else', () => {
    expect(() => actions({ alias: '' })).toThrow(
      'that nodeplane did not make; rename or remove it (ip link delete nodeplane-v4)',
    );
    expect(diffDevice({ ...present, alias: '' }, undefined)).toEqual([]);
    expect(diffDevice(present, undefined)).toEqual([{ action: 'delete', index: 7 }]);
  });
});

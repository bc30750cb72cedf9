import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type Cidr,
  formatCidr,
  ipFromBytes,
  isExists,
  isNotFound,
  parseAddressWithPrefix,
  parseCidr,
  parseIp,
} from '../../src/core/index.ts';
import { Netlink } from '../../src/netlink/index.ts';
import { deleteLink, getLink, newAddress, newDummy, newRoute, setLink } from '../../src/netlink/route/index.ts';
import {
  formatKey,
  generatePrivateKey,
  getWireguard,
  newWireguardLink,
  openWireguard,
  publicKeyOf,
  setWireguard,
  type WireguardChange,
} from '../../src/netlink/wireguard/index.ts';
import { inNetns } from '../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../lab/namespace.ts';

// Here, because it takes a kernel with WireGuard.

/** One of two nodes on a common wire, with a WireGuard device. */
interface Node {
  readonly namespace: TestNamespace;
  readonly route: Netlink;
  readonly wireguard: ReturnType<typeof openWireguard>;
  /** Index of wg0. */
  readonly index: number;
  readonly privateKey: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly address: string;
  /** The address of its pods. */
  readonly pod: string;
}

let left: Node;
let right: Node;

beforeEach(() => {
  const [a, b] = [createNamespace('left'), createNamespace('right')];
  a.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', b.name);
  left = makeNode(a, '192.0.2.1', '10.244.1.1');
  right = makeNode(b, '192.0.2.2', '10.244.2.1');
  return () => {
    for (const node of [left, right]) {
      node.route.close();
      node.wireguard.netlink.close();
    }
  };
});

afterEach(removeAll);

function makeNode(namespace: TestNamespace, address: string, pod: string): Node {
  const route = inNetns(namespace.path, () => Netlink.openRoute());
  const link = getLink(route, { name: 'eth0' })!.index;
  route.execute(
    setLink(1, { up: true }),
    setLink(link, { up: true }),
    newAddress({ index: link, ...parseAddressWithPrefix(`${address}/24`) }),
    newWireguardLink({ name: 'wg0', mtu: 1400 }),
    setLink({ name: 'wg0' }, { up: true }),
  );
  const { index } = getLink(route, { name: 'wg0' })!;
  route.execute(
    newAddress({ index, ...parseAddressWithPrefix(`${pod}/32`) }),
    newRoute({ destination: parseCidr('10.244.0.0/16'), outInterface: index }),
  );
  const privateKey = generatePrivateKey();
  const wireguard = inNetns(namespace.path, openWireguard);
  return { namespace, route, wireguard, index, privateKey, publicKey: publicKeyOf(privateKey), address, pod };
}

const set = ({ wireguard: { netlink, family }, index }: Node, change: WireguardChange) =>
  netlink.execute(...setWireguard(family, index, change));
const get = ({ wireguard: { netlink, family }, index }: Node) => getWireguard(netlink, family, index);
const allowed = (node: Node) =>
  Object.fromEntries(get(node).peers.map((peer) => [formatKey(peer.publicKey), peer.allowedIps.map(formatCidr)]));

function introduce(node: Node, peer: Node): void {
  set(node, {
    privateKey: node.privateKey,
    port: 51820,
    replacePeers: true,
    peers: [
      {
        publicKey: peer.publicKey,
        endpoint: { ip: parseIp(peer.address), port: 51820 },
        keepaliveSeconds: 25,
        allowedIps: [parseCidr(`${peer.pod}/32`)],
      },
    ],
  });
}

const ping = (from: Node, to: Node) => from.namespace.run('ping', '-c', '1', '-W', '20', '-I', from.pod, to.pod);

describe('a WireGuard device', () => {
  it('carries packets between two nodes, and tells of them', () => {
    expect(getLink(left.route, { name: 'wg0' })).toMatchObject({ kind: 'wireguard', mtu: 1400, up: true });
    introduce(left, right);
    introduce(right, left);
    expect(ping(left, right)).toContain('1 received');
    const device = get(left);
    expect(device).toMatchObject({ name: 'wg0', index: left.index, port: 51820, fwmark: 0 });
    expect(Buffer.from(device.privateKey!)).toEqual(Buffer.from(left.privateKey));
    expect(Buffer.from(device.publicKey!)).toEqual(Buffer.from(left.publicKey));
    const [peer] = device.peers;
    expect(peer).toMatchObject({
      endpoint: { ip: parseIp('192.0.2.2'), port: 51820 },
      keepaliveSeconds: 25,
      allowedIps: [parseCidr('10.244.2.1/32')],
    });
    expect(peer!.lastHandshake).toBeGreaterThan(1_600_000_000);
    expect(peer!.receivedBytes).toBeGreaterThan(0n);
    expect(peer!.sentBytes).toBeGreaterThan(0n);
  });

  it('changes in place what is given, and nothing else', () => {
    introduce(left, right);
    set(left, { fwmark: 0x10, peers: [{ publicKey: right.publicKey, keepaliveSeconds: 0 }] });
    expect(get(left)).toMatchObject({
      port: 51820,
      fwmark: 0x10,
      peers: [{ keepaliveSeconds: 0, endpoint: { port: 51820 }, allowedIps: [parseCidr('10.244.2.1/32')] }],
    });
    set(left, { peers: [{ publicKey: right.publicKey, endpoint: { ip: parseIp('fd00::9'), port: 9 } }] });
    expect(get(left).peers).toEqual([expect.objectContaining({ endpoint: { ip: parseIp('fd00::9'), port: 9 } })]);
  });

  it('moves an allowed address from one peer to another, and removes peers', () => {
    const [one, two] = [publicKeyOf(generatePrivateKey()), publicKeyOf(generatePrivateKey())];
    const [shared, own] = [parseCidr('10.244.9.0/24'), parseCidr('fd09::/64')];
    set(left, {
      peers: [
        { publicKey: one, allowedIps: [shared, own] },
        { publicKey: two, allowedIps: [] },
      ],
    });
    set(left, { peers: [{ publicKey: two, allowedIps: [shared] }] });
    expect(allowed(left)).toEqual({ [formatKey(one)]: ['fd09::/64'], [formatKey(two)]: ['10.244.9.0/24'] });
    set(left, { peers: [{ publicKey: one, allowedIps: [parseCidr('10.1.0.0/16')], replaceAllowedIps: true }] });
    expect(allowed(left)[formatKey(one)]).toEqual(['10.1.0.0/16']);
    const stranger = publicKeyOf(generatePrivateKey());
    set(left, {
      peers: [
        { publicKey: one, remove: true },
        { publicKey: stranger, remove: true },
        { publicKey: stranger, updateOnly: true, allowedIps: [own] },
      ],
    });
    expect(Object.keys(allowed(left))).toEqual([formatKey(two)]);
  });

  it('takes thousands of allowed addresses and of peers, in several messages', () => {
    const ips = (network: number, count: number): Cidr[] =>
      Array.from({ length: count }, (_, i) => ({
        address: ipFromBytes(Uint8Array.of(network, i >> 16, (i >> 8) & 0xff, i & 0xff)),
        prefixLength: 32,
      }));
    const many = ips(10, 5000);
    const change = { peers: [{ publicKey: right.publicKey, allowedIps: many, replaceAllowedIps: true }] };
    expect(setWireguard(1, left.index, change)).toHaveLength(3);
    set(left, change);
    set(left, change);
    expect(allowed(left)[formatKey(right.publicKey)]?.sort()).toEqual(many.map(formatCidr).sort());
    const peers = ips(11, 1000).map((ip) => ({ publicKey: publicKeyOf(generatePrivateKey()), allowedIps: [ip] }));
    set(left, { peers, replacePeers: true });
    expect(allowed(left)).toEqual(
      Object.fromEntries(peers.map((peer) => [formatKey(peer.publicKey), peer.allowedIps.map(formatCidr)])),
    );
  });

  it('is refused where it is none, or is there', () => {
    const refusalOf = (action: () => void) => {
      try {
        action();
      } catch (error) {
        return error;
      }
      throw new Error('It should have been refused');
    };
    expect(isExists(refusalOf(() => left.route.execute(newWireguardLink({ name: 'wg0' }))))).toBe(true);
    left.route.execute(deleteLink({ name: 'wg0' }), newDummy('d0'));
    expect(isNotFound(refusalOf(() => set(left, { port: 1 })))).toBe(true);
    expect(isNotFound(refusalOf(() => get(left)))).toBe(true);
    const dummy = { ...left, index: getLink(left.route, { name: 'd0' })!.index };
    expect(String(refusalOf(() => set(dummy, { port: 1 })))).toContain(
      `WG_CMD_SET_DEVICE WireGuard device ${dummy.index}: operation not supported (EOPNOTSUPP)`,
    );
  });
});

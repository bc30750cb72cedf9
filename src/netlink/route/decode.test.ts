import { describe, expect, it } from 'vitest';
import { expectSafeDecoder } from '../../../test/fakes/decoder-properties.ts';
import { capturedPayload } from '../../../test/fakes/netlink-golden.ts';
import { parseCidr, parseIp } from '../../core/index.ts';
import { decodeAddress, newAddress } from './address.ts';
import { newVxlan } from './devices/vxlan.ts';
import { decodeLink } from './link.ts';
import { newBridge, newVeth, setBridgePort } from './link-change.ts';
import { decodeLinkTraffic } from './link-traffic.ts';
import { decodeNeighbour, newNeighbour } from './neighbour.ts';
import { decodeNexthop, newNexthop } from './nexthop.ts';
import { decodeRoute, newRoute } from './route.ts';

// A decoder gives a value or ERR_NETLINK_DECODE for any bytes: arbitrary ones, and valid messages with some bytes
// changed, cut off or added, which get past the outer checks.

const mac = Uint8Array.of(2, 0, 0, 0, 0, 1);
const lladdr = mac;
const address = parseIp('10.1.0.1');
const gateway = parseIp('fd00::2');
const MASTER_ATTRIBUTES = Buffer.from(
  // IFLA_LINKINFO{ IFLA_INFO_SLAVE_KIND "bridge", IFLA_INFO_SLAVE_DATA{ IFLA_BRPORT_MODE 1, IFLA_BRPORT_ISOLATED 1 } }
  '24001200' + '0a000400' + '6272696467650000' + '14000500' + '0500040001000000' + '0500210001000000',
  'hex',
);

/** `ip addr add fd00:1::1/64 nodad noprefixroute dev cni0`: flags that do not fit the header. */
const NO_PREFIX_ROUTE = capturedPayload(
  '48000000140005065592006b000000000a4000000400000014000200fd000001000000000000000000000001' +
    '080008000202000014000100fd000001000000000000000000000001',
);

const COUNTERS = Buffer.from(
  // IFLA_STATS64{ rx_packets 1, tx_packets 2, rx_bytes 3, tx_bytes 4 }, as much of it as is read
  `24001700${[1, 2, 3, 4].map((count) => `0${count}00000000000000`).join('')}`,
  'hex',
);

const valid = {
  link: [
    newBridge({ name: 'cni0', mac, mtu: 1400 }).payload,
    newVeth({ name: 'veth0', mac, master: 4, peer: { name: 'eth0', mac, netnsFd: 3 } }).payload,
    setBridgePort(4, { hairpin: true, isolated: true }).payload,
    newVxlan({ name: 'vx0', mac, vni: 1, port: 8472, local: gateway }).payload,
    Buffer.concat([newBridge({ name: 'v', mac }).payload.subarray(0, 28), MASTER_ATTRIBUTES]),
  ],
  'link’s counters': [Buffer.concat([newBridge({ name: 'v', mac }).payload.subarray(0, 28), COUNTERS])],
  address: [
    newAddress({ index: 4, address, prefixLength: 16 }).payload,
    newAddress({ index: 4, address: gateway, prefixLength: 64 }).payload,
    NO_PREFIX_ROUTE,
  ],
  route: [
    newRoute({ destination: parseCidr('10.4.0.0/16'), gateway: address, source: address, table: 1000, mtu: 1400 })
      .payload,
    newRoute({ destination: parseCidr('::/0'), gateway, outInterface: 4 }).payload,
    newRoute({ destination: parseCidr('10.4.0.0/16'), nexthopId: 7 }).payload,
  ],
  neighbour: [
    newNeighbour({ index: 4, ip: address, lladdr }).payload,
    newNeighbour({ index: 4, ip: gateway, lladdr, family: 'bridge', vlan: 7 }).payload,
  ],
  nexthop: [
    newNexthop({ id: 1, gateway: address, outInterface: 4 }).payload,
    newNexthop({ id: 2, gateway, outInterface: 4, onlink: true }).payload,
  ],
};

const DECODERS: Record<keyof typeof valid, (payload: Uint8Array) => unknown> = {
  link: decodeLink,
  'link’s counters': decodeLinkTraffic,
  address: decodeAddress,
  route: decodeRoute,
  neighbour: decodeNeighbour,
  nexthop: decodeNexthop,
};

describe.each(Object.keys(DECODERS) as (keyof typeof valid)[])('decoding a %s', (kind) => {
  it('gives a value or ERR_NETLINK_DECODE for any bytes', () => {
    expectSafeDecoder(DECODERS[kind], valid[kind]);
  });
});

it('decodeLinkTraffic reads 64 bits in each direction', () => {
  const counts = { packetsIn: 1n, packetsOut: 2n, bytesIn: 3n, bytesOut: 4n };
  expect(decodeLinkTraffic(valid['link’s counters'][0]!)).toEqual(counts);
});

describe('decodeLink', () => {
  it('reads the port flags of a bridge port', () => {
    expect(decodeLink(valid.link[4]!).bridgePort).toMatchObject({ hairpin: true, isolated: true, learning: false });
    expect(decodeLink(valid.link[0]!).bridgePort).toBeUndefined();
  });
});

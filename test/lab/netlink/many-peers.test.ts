import { afterAll, beforeAll, expect, it } from 'vitest';
import { type IpAddress, ipFromBytes, parseAddressWithPrefix } from '../../../src/core/index.ts';
import { Netlink, type NetlinkRequest, type NetlinkTransport } from '../../../src/netlink/index.ts';
import {
  deleteNexthop,
  getLink,
  listNeighbours,
  listNexthops,
  listRoutes,
  newAddress,
  newNeighbour,
  newNexthop,
  newRoute,
  newVxlan,
  setLink,
} from '../../../src/netlink/route/index.ts';
import { openSocket } from '../../../src/netlink/socket.ts';
import { NETLINK_ROUTE, NUD_PERMANENT } from '../../../src/netlink/uapi/index.ts';
import { inNetns } from '../../../src/sys/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac } from './witness.ts';

const PEERS = 5000;
const OURS = 80;
const FIRST_ID = 0x4e50_0001;

let node: TestNamespace;
let index: number;
let netlink: Netlink;
const calls = { sent: 0, received: 0 };

beforeAll(() => {
  node = createNamespace('peers');
  netlink = inNetns(node.path, () => new Netlink(counting(openSocket(NETLINK_ROUTE))));
  netlink.execute(setLink(1, { up: true }), newVxlan({ name: 'vx0', mac: mac(1).bytes, vni: 1, port: 8472, up: true }));
  index = getLink(netlink, { name: 'vx0' })!.index;
  netlink.execute(newAddress({ index, ...parseAddressWithPrefix('10.0.0.0/32') }));
});

afterAll(() => {
  netlink.close();
  removeAll();
});

/** A transport that counts the datagrams in both directions. */
function counting(transport: NetlinkTransport): NetlinkTransport {
  return {
    portId: transport.portId,
    send(data) {
      calls.sent++;
      transport.send(data);
    },
    receive() {
      calls.received++;
      return transport.receive();
    },
    close: () => transport.close(),
  };
}

/** What the work takes, in datagrams sent. */
function sends(work: () => void): number {
  const before = calls.sent;
  work();
  return calls.sent - before;
}

/** 10.<i>.0 as the first address of peer i's pods, 172.16.<i> as its own. */
const podsOf = (i: number): IpAddress => ipFromBytes(Uint8Array.of(10, 1 + (i >> 8), i & 0xff, 0));
const tunnelEndOf = (i: number): IpAddress => ipFromBytes(Uint8Array.of(172, 16, i >> 8, i & 0xff));
const macOf = (i: number) => Uint8Array.of(2, 0, 0, 1, i >> 8, i & 0xff);
const each = (request: (i: number) => NetlinkRequest) => Array.from({ length: PEERS }, (_, i) => request(i));

const neighbours = () => each((i) => newNeighbour({ index, ip: podsOf(i), lladdr: macOf(i), replace: true }));
const fdb = () =>
  each((i) => newNeighbour({ index, family: 'bridge', lladdr: macOf(i), ip: tunnelEndOf(i), replace: true }));
const nexthops = () =>
  each((i) =>
    newNexthop({
      id: FIRST_ID + i,
      gateway: podsOf(i),
      outInterface: index,
      onlink: true,
      protocol: OURS,
      replace: true,
    }),
  );
const routes = () =>
  each((i) =>
    newRoute({
      destination: { address: podsOf(i), prefixLength: 24 },
      nexthopId: FIRST_ID + i,
      protocol: OURS,
      replace: true,
    }),
  );

it(`${PEERS} peers are made in a few datagrams, and once more without a change`, () => {
  const all = () => [...neighbours(), ...fdb(), ...nexthops(), ...routes()];
  expect(sends(() => expect(netlink.attempt(all()).filter(Boolean)).toEqual([]))).toBe(10);
  const counts = () => [
    listRoutes(netlink, { protocol: OURS }).length,
    listNexthops(netlink, { outInterface: index }).length,
    listNeighbours(netlink, { index, family: 'IPv4' }).filter(({ state }) => state === NUD_PERMANENT).length,
    listNeighbours(netlink, { index, family: 'bridge' }).length,
  ];
  expect(counts()).toEqual([PEERS, PEERS, PEERS, PEERS]);
  netlink.execute(...all());
  expect(counts()).toEqual([PEERS, PEERS, PEERS, PEERS]);
});

it('listing thousands takes a datagram for hundreds of them', () => {
  const before = calls.received;
  expect(listRoutes(netlink, { protocol: OURS })).toHaveLength(PEERS);
  expect(calls.received - before).toBeLessThan(PEERS / 100);
  // What the kernel leaves out costs nothing to read.
  const quiet = calls.received;
  expect(listRoutes(netlink, { protocol: OURS + 1 })).toEqual([]);
  expect(calls.received - quiet).toBeLessThan(4);
});

it('a refusal belongs to its request, wherever it stands', () => {
  const bad = [0, 1999, 2000, 4321, PEERS - 1];
  netlink.execute(...bad.map((i) => deleteNexthop(FIRST_ID + i)));
  const outcomes = netlink.attempt(routes());
  expect(outcomes.flatMap((error, i) => (error ? [i] : []))).toEqual(bad);
  expect(outcomes[4321]?.message).toBe(
    `RTM_NEWROUTE 10.17.225.0/24 by nexthop ${FIRST_ID + 4321}: invalid argument (EINVAL): Nexthop id does not exist`,
  );
});

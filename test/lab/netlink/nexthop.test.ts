import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import {
  formatCidr,
  isExists,
  isNotFound,
  parseAddressWithPrefix,
  parseCidr,
  parseIp,
} from '../../../src/core/index.ts';
import type { Netlink } from '../../../src/netlink/index.ts';
import {
  deleteNexthop,
  getLink,
  listNexthops,
  listRoutes,
  newAddress,
  newNexthop,
  newRoute,
  setLink,
} from '../../../src/netlink/route/index.ts';
import { RTN_BLACKHOLE, RTN_UNREACHABLE } from '../../../src/netlink/uapi/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { openIn, witness } from './witness.ts';

/** A protocol number of our own. */
const OURS = 80;
const ID = 0x4e50_0000;

let node: TestNamespace;
let netlink: Netlink;
let outInterface: number;

beforeEach(() => {
  node = createNamespace('nexthop');
  netlink = openIn(node);
  // A link with a carrier: a nexthop is refused on any other.
  node.run('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'peer0');
  netlink.execute(...[1, { name: 'eth0' }, { name: 'peer0' }].map((which) => setLink(which, { up: true })));
  outInterface = getLink(netlink, { name: 'eth0' })!.index;
  netlink.execute(
    ...['10.1.0.1/16', 'fd00::1/64'].map((text) =>
      newAddress({ index: outInterface, ...parseAddressWithPrefix(text) }),
    ),
  );
  return () => {
    netlink.close();
    removeAll();
  };
});

afterAll(removeAll);

const nexthop = (n: number, gateway: string, change: object = {}) =>
  newNexthop({ id: ID + n, gateway: parseIp(gateway), outInterface, protocol: OURS, ...change });
const route = (destination: string, n: number) =>
  newRoute({ destination: parseCidr(destination), nexthopId: ID + n, protocol: OURS });
const listed = () =>
  listRoutes(netlink, { protocol: OURS }).map((r) => `${formatCidr(r.destination)} by ${r.nexthopId - ID}`);
const nexthopAt = (id: number) => listNexthops(netlink).find((one) => one.id === id);
const refusalOf = (...requests: Parameters<Netlink['attempt']>[0]) => netlink.attempt(requests).at(-1);

describe('nexthop objects', () => {
  it('of both families are made, listed as iproute2 lists them, replaced and deleted', () => {
    netlink.execute(nexthop(1, '10.1.0.2'), nexthop(2, 'fd00::2'), nexthop(3, '192.0.2.3', { onlink: true }));
    node.run('ip', 'nexthop', 'add', 'id', '9', 'via', '10.1.0.9', 'dev', 'eth0');
    expect(witness(node, 'ip', 'nexthop').map((n) => [n.id, n.gateway, n.dev, n.flags])).toEqual([
      [9, '10.1.0.9', 'eth0', []],
      [ID + 1, '10.1.0.2', 'eth0', []],
      [ID + 2, 'fd00::2', 'eth0', []],
      [ID + 3, '192.0.2.3', 'eth0', ['onlink']],
    ]);
    expect(listNexthops(netlink, { outInterface }).map(({ id, protocol }) => [id, protocol])).toEqual([
      [9, 0],
      [ID + 1, OURS],
      [ID + 2, OURS],
      [ID + 3, OURS],
    ]);
    expect(listNexthops(netlink, { family: 'IPv6' }).map(({ id }) => id)).toEqual([ID + 2]);
    expect(listNexthops(netlink, { outInterface: 1 })).toEqual([]);
    expect(isExists(refusalOf(nexthop(1, '10.1.0.3')))).toBe(true);
    netlink.execute(nexthop(1, '10.1.0.3', { replace: true }));
    expect(nexthopAt(ID + 1)).toMatchObject({ gateway: parseIp('10.1.0.3'), outInterface, onlink: false });
    netlink.execute(deleteNexthop(ID + 1));
    expect(nexthopAt(ID + 1)).toBeUndefined();
    expect(isNotFound(refusalOf(deleteNexthop(ID + 1)))).toBe(true);
  });

  it('take their routes along: to another gateway, and away', () => {
    netlink.execute(nexthop(1, '10.1.0.2'), nexthop(2, 'fd00::2'));
    netlink.execute(route('10.2.0.0/24', 1), route('10.3.0.0/24', 1), route('fd02::/64', 2));
    expect(witness(node, 'ip', 'route', 'show', 'proto', String(OURS))).toEqual([
      expect.objectContaining({ dst: '10.2.0.0/24', nhid: ID + 1, gateway: '10.1.0.2', dev: 'eth0' }),
      expect.objectContaining({ dst: '10.3.0.0/24', nhid: ID + 1 }),
    ]);
    netlink.execute(nexthop(1, '10.1.0.7', { replace: true }));
    expect(listRoutes(netlink, { protocol: OURS })).toEqual([
      expect.objectContaining({ nexthopId: ID + 1, gateway: parseIp('10.1.0.7'), outInterface, scope: 0 }),
      expect.objectContaining({ nexthopId: ID + 1, gateway: parseIp('10.1.0.7') }),
      expect.objectContaining({ nexthopId: ID + 2, gateway: parseIp('fd00::2'), family: 'IPv6' }),
    ]);
    netlink.execute(deleteNexthop(ID + 1), deleteNexthop(ID + 2));
    expect(listed()).toEqual([]);
  });

  it.each([
    ['link', 'eth0'],
    ['carrier', 'peer0'],
  ])('go with their %s, and their routes with them', async (_, name) => {
    netlink.execute(nexthop(1, '10.1.0.2'), nexthop(2, 'fd00::2'), route('10.2.0.0/24', 1), route('fd02::/64', 2));
    expect(listed()).toHaveLength(2);
    netlink.execute(setLink({ name }, { up: false }));
    // The kernel looks after a lost carrier a moment later.
    await expect.poll(() => [listed(), listNexthops(netlink)]).toEqual([[], []]);
    expect(String(refusalOf(nexthop(1, '10.1.0.2')))).toContain('ENETDOWN');
  });

  it('are named in refusals, with the kernel’s own words', () => {
    expect(String(refusalOf(route('10.2.0.0/24', 1)))).toContain(
      `RTM_NEWROUTE 10.2.0.0/24 by nexthop ${ID + 1}: invalid argument (EINVAL): Nexthop id does not exist`,
    );
    expect(String(refusalOf(nexthop(1, '192.0.2.1')))).toContain(
      `RTM_NEWNEXTHOP nexthop ${ID + 1} via 192.0.2.1 on link`,
    );
  });
});

describe('listed routes', () => {
  const gateway = (last: number) => parseIp(`10.1.0.${last}`);
  const destination = parseCidr('10.2.0.0/24');

  it('are those of one protocol, whatever the others are', () => {
    netlink.execute(
      newRoute({ destination, gateway: gateway(2), priority: 5 }),
      newRoute({ destination, gateway: gateway(3), protocol: OURS }),
      newRoute({ destination: parseCidr('10.9.0.0/24'), type: RTN_UNREACHABLE, protocol: OURS, priority: 50 }),
      newRoute({ destination: parseCidr('fd09::/64'), type: RTN_BLACKHOLE, protocol: OURS, table: 1000 }),
    );
    expect(listRoutes(netlink, { protocol: OURS }).map(({ type, priority, table }) => [type, priority, table])).toEqual(
      [
        [1, 0, 254],
        [RTN_UNREACHABLE, 50, 254],
        [RTN_BLACKHOLE, 1024, 1000],
      ],
    );
    expect(listRoutes(netlink, { protocol: OURS, table: 1000 })).toHaveLength(1);
    expect(listRoutes(netlink, { protocol: OURS, outInterface, family: 'IPv4' })).toHaveLength(1);
  });
});

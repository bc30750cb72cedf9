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
  deleteRoute,
  getLink,
  listRoutes,
  newAddress,
  newBridge,
  newRoute,
  setLink,
} from '../../../src/netlink/route/index.ts';
import { RT_SCOPE_LINK, RT_TABLE_MAIN, RTN_BLACKHOLE, RTPROT_STATIC } from '../../../src/netlink/uapi/index.ts';
import { createNamespace, removeAll, type TestNamespace } from '../namespace.ts';
import { mac, openIn, witness } from './witness.ts';

let node: TestNamespace;
let netlink: Netlink;
let outInterface: number;

beforeEach(() => {
  node = createNamespace('route');
  netlink = openIn(node);
  netlink.execute(setLink(1, { up: true }), newBridge({ name: 'cni0', mac: mac(1).bytes, up: true }));
  outInterface = getLink(netlink, { name: 'cni0' })!.index;
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

/** The static routes of the main table. */
const ours = () => listRoutes(netlink, { table: RT_TABLE_MAIN }).filter((route) => route.protocol === RTPROT_STATIC);
const seen = (...args: string[]) => witness(node, 'ip', ...args, 'route', 'show', 'proto', 'static');

function refusalOf(action: () => void): unknown {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error('It should have been refused');
}

describe('routes', () => {
  it('by default through a gateway, in both families', () => {
    netlink.execute(
      newRoute({ destination: parseCidr('0.0.0.0/0'), gateway: parseIp('10.1.0.254'), outInterface }),
      newRoute({ destination: parseCidr('::/0'), gateway: parseIp('fd00::2'), outInterface }),
    );
    expect(seen()).toEqual([expect.objectContaining({ dst: 'default', gateway: '10.1.0.254', dev: 'cni0' })]);
    expect(seen('-6')).toEqual([
      expect.objectContaining({ dst: 'default', gateway: 'fd00::2', dev: 'cni0', metric: 1024 }),
    ]);
    expect(ours()).toEqual([
      expect.objectContaining({
        family: 'IPv4',
        destination: parseCidr('0.0.0.0/0'),
        gateway: parseIp('10.1.0.254'),
        outInterface,
        priority: 0,
        onlink: false,
      }),
      expect.objectContaining({
        family: 'IPv6',
        destination: parseCidr('::/0'),
        gateway: parseIp('fd00::2'),
        priority: 1024,
      }),
    ]);
  });

  it('of link scope, onlink, with metrics, source and MTU, and to nowhere', () => {
    netlink.execute(
      newRoute({ destination: parseCidr('10.2.0.0/16'), outInterface }),
      newRoute({ destination: parseCidr('10.3.0.0/16'), gateway: parseIp('192.0.2.1'), outInterface, onlink: true }),
      newRoute({
        destination: parseCidr('10.4.0.0/16'),
        gateway: parseIp('10.1.0.3'),
        source: parseIp('10.1.0.1'),
        priority: 50,
        mtu: 1400,
        advmss: 1360,
      }),
      newRoute({ destination: parseCidr('10.5.0.0/16'), type: RTN_BLACKHOLE }),
      newRoute({ destination: parseCidr('fd02::/64'), outInterface, mtu: 1400 }),
    );
    expect(seen()).toEqual([
      expect.objectContaining({ dst: '10.2.0.0/16', dev: 'cni0', scope: 'link' }),
      expect.objectContaining({ dst: '10.3.0.0/16', gateway: '192.0.2.1', flags: expect.arrayContaining(['onlink']) }),
      expect.objectContaining({
        dst: '10.4.0.0/16',
        gateway: '10.1.0.3',
        dev: 'cni0',
        prefsrc: '10.1.0.1',
        metric: 50,
        metrics: [{ mtu: 1400, advmss: 1360 }],
      }),
      expect.objectContaining({ type: 'blackhole', dst: '10.5.0.0/16' }),
    ]);
    expect(seen('-6')).toEqual([expect.objectContaining({ dst: 'fd02::/64', metrics: [{ mtu: 1400 }] })]);
    const [link, onlink, full, blackhole, ipv6] = ours();
    expect(link).toMatchObject({ scope: RT_SCOPE_LINK, gateway: undefined, onlink: false });
    expect(onlink).toMatchObject({ gateway: parseIp('192.0.2.1'), onlink: true });
    expect(full).toMatchObject({ source: parseIp('10.1.0.1'), priority: 50, mtu: 1400, advmss: 1360, outInterface });
    expect(blackhole).toMatchObject({ type: RTN_BLACKHOLE, outInterface: 0 });
    expect(ipv6).toMatchObject({ destination: parseCidr('fd02::/64'), mtu: 1400, outInterface });
  });

  it('take the place of others only on demand', () => {
    const destination = parseCidr('10.2.0.0/16');
    netlink.execute(newRoute({ destination, gateway: parseIp('10.1.0.2') }));
    const error = refusalOf(() => netlink.execute(newRoute({ destination, gateway: parseIp('10.1.0.3') })));
    expect(isExists(error)).toBe(true);
    netlink.execute(newRoute({ destination, gateway: parseIp('10.1.0.4'), replace: true }));
    expect(ours().map((route) => route.gateway)).toEqual([parseIp('10.1.0.4')]);
  });

  it('are deleted, and not found twice', () => {
    const routes = ['10.2.0.0/16', 'fd02::/64'].map((text) => ({ destination: parseCidr(text), outInterface }));
    netlink.execute(...routes.map(newRoute));
    for (const route of routes) {
      netlink.execute(deleteRoute(route));
      expect(isNotFound(refusalOf(() => netlink.execute(deleteRoute(route))))).toBe(true);
    }
    expect(ours()).toEqual([]);
  });

  it('live in tables with large numbers too', () => {
    const destination = parseCidr('10.2.0.0/16');
    expect(listRoutes(netlink, { table: 1000, family: 'IPv4' })).toEqual([]);
    netlink.execute(newRoute({ destination, outInterface, table: 1000 }));
    expect(witness(node, 'ip', 'route', 'show', 'table', '1000')).toHaveLength(1);
    expect(listRoutes(netlink, { table: 1000 }).map((route) => [route.table, formatCidr(route.destination)])).toEqual([
      [1000, '10.2.0.0/16'],
    ]);
    netlink.execute(deleteRoute({ destination, table: 1000 }));
    expect(listRoutes(netlink, { table: 1000 })).toEqual([]);
  });

  it('are listed by family and by link as iproute2 lists them', () => {
    const count = (filter: object) => listRoutes(netlink, filter).length;
    expect(count({ family: 'IPv4' })).toBe(witness(node, 'ip', '-4', 'route', 'show', 'table', 'all').length);
    expect(count({ family: 'IPv6' })).toBe(witness(node, 'ip', '-6', 'route', 'show', 'table', 'all').length);
    expect(count({})).toBe(count({ family: 'IPv4' }) + count({ family: 'IPv6' }));
    expect(count({ family: 'IPv4', outInterface: 1 })).toBeGreaterThan(0);
    expect(count({ family: 'IPv4', outInterface: 1 })).toBeLessThan(count({ family: 'IPv4' }));
    expect(listRoutes(netlink, { outInterface }).every((route) => route.outInterface === outInterface)).toBe(true);
  });

  it("are refused with the kernel's own words", () => {
    const error = refusalOf(() =>
      netlink.execute(newRoute({ destination: parseCidr('10.2.0.0/16'), gateway: parseIp('192.0.2.1') })),
    );
    expect(String(error)).toContain(
      'RTM_NEWROUTE 10.2.0.0/16 via 192.0.2.1: network is unreachable (ENETUNREACH): Nexthop has invalid gateway',
    );
  });
});

import { type IpFamily, specialRange } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import { listNeighbours, listNexthops, listRoutes, type Nexthop, type Route } from '../../netlink/route/index.ts';
import { NUD_PERMANENT, RT_TABLE_MAIN, RTN_UNICAST, RTN_UNREACHABLE } from '../../netlink/uapi/index.ts';
import {
  FIRST_NEXTHOP_ID,
  IPV6_METRIC,
  LAST_METRIC,
  NEXTHOP_IDS,
  type RouteObject,
  RTPROT_NODEPLANE,
} from './route-object.ts';

export interface ListOptions {
  readonly family: IpFamily;
  /** Index of our device. */
  readonly tunnel: number | undefined;
  readonly withNexthops: boolean;
}

/** What is ours in the kernel: routes and nexthops by protocol, and on our device everything permanent. */
export function listObjects(netlink: Netlink, { family, tunnel, withNexthops }: ListOptions): RouteObject[] {
  const routes = listRoutes(netlink, { family, table: RT_TABLE_MAIN, protocol: RTPROT_NODEPLANE }).flatMap(routeObject);
  const nexthops = withNexthops ? listNexthops(netlink, { family }).flatMap(nexthopObject) : [];
  if (tunnel === undefined) return [...nexthops, ...routes];
  return [...neighbourObjects(netlink, family, tunnel), ...fdbObjects(netlink, tunnel), ...nexthops, ...routes];
}

/** Nothing for a route that is not as ours are: somebody else's with our number. */
function routeObject({
  family,
  type,
  priority,
  destination,
  nexthopId,
  gateway,
  outInterface,
  onlink,
}: Route): RouteObject[] {
  if (type === RTN_UNREACHABLE) {
    return priority === LAST_METRIC ? [{ kind: 'route', destination, way: 'unreachable' }] : [];
  }
  if (type !== RTN_UNICAST || priority !== (family === 'IPv4' ? 0 : IPV6_METRIC)) return [];
  if (nexthopId !== 0) return [{ kind: 'route', destination, way: 'nexthop', id: nexthopId }];
  if (gateway) return [{ kind: 'route', destination, way: 'gateway', gateway, outInterface, onlink }];
  return outInterface === 0 ? [] : [{ kind: 'route', destination, way: 'device', outInterface }];
}

function nexthopObject({ id, protocol, gateway, outInterface, onlink }: Nexthop): RouteObject[] {
  const isOurs = protocol === RTPROT_NODEPLANE && id >= FIRST_NEXTHOP_ID && id < FIRST_NEXTHOP_ID + NEXTHOP_IDS;
  return isOurs && gateway ? [{ kind: 'nexthop', id, gateway, outInterface, onlink }] : [];
}

function neighbourObjects(netlink: Netlink, family: IpFamily, index: number): RouteObject[] {
  return listNeighbours(netlink, { family, index }).flatMap(({ ip, lladdr, state }): RouteObject[] =>
    ip && state === NUD_PERMANENT && specialRange(ip) === undefined
      ? [{ kind: 'neighbour', index, ip, mac: lladdr }]
      : [],
  );
}

function fdbObjects(netlink: Netlink, index: number): RouteObject[] {
  return listNeighbours(netlink, { family: 'bridge', index }).flatMap(({ ip, lladdr }): RouteObject[] =>
    ip && lladdr.length === 6 ? [{ kind: 'fdb', index, mac: lladdr, remote: ip }] : [],
  );
}

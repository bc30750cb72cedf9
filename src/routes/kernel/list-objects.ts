import { formatIp, type IpFamily, specialRange } from '../../core/index.ts';
import { listInSlices, type Netlink } from '../../netlink/index.ts';
import {
  decodeListedRoute,
  decodeNeighbour,
  decodeNexthop,
  type Nexthop,
  neighbourListing,
  nexthopListing,
  type Route,
  routeListing,
} from '../../netlink/route/index.ts';
import { NUD_PERMANENT, RT_TABLE_MAIN, RTN_UNICAST, RTN_UNREACHABLE } from '../../netlink/uapi/index.ts';
import {
  FIRST_NEXTHOP_ID,
  IPV6_METRIC,
  LAST_METRIC,
  NEXTHOP_IDS,
  type RouteObject,
  type RouteWay,
  RTPROT_NODEPLANE,
} from './route-object.ts';

export interface ListOptions {
  readonly family: IpFamily;
  /** Index of our device. */
  readonly tunnel: number | undefined;
  readonly withNexthops: boolean;
}

/** What is ours in the kernel: routes and nexthops by protocol, and on our device everything permanent. */
export async function listObjects(
  netlink: Netlink,
  { family, tunnel, withNexthops }: ListOptions,
): Promise<RouteObject[]> {
  const routes = routeListing({ family, table: RT_TABLE_MAIN, protocol: RTPROT_NODEPLANE });
  const ours = await listInSlices(netlink, routes, (payload) => routeObject(decodeListedRoute(payload)));
  if (withNexthops) {
    const nexthops = nexthopListing({ family });
    ours.push(...(await listInSlices(netlink, nexthops, (payload) => nexthopObject(decodeNexthop(payload)))));
  }
  if (tunnel === undefined) return ours;
  const neighbours = await listInSlices(netlink, neighbourListing({ family, index: tunnel }), neighbourObject);
  const entries = await listInSlices(netlink, neighbourListing({ family: 'bridge', index: tunnel }), fdbObject);
  return [...neighbours, ...entries, ...ours];
}

/** Undefined for a route that is not as ours are: somebody else's with our number. */
function routeObject(route: Route | undefined): RouteObject | undefined {
  const way = route && wayOf(route);
  if (!way) return undefined;
  const { destination } = route;
  const additions = additionsOf(route);
  return { kind: 'route', destination, ...way, ...(additions !== '' && { additions }) };
}

function wayOf({ family, type, priority, nexthopId, gateway, outInterface, onlink }: Route): RouteWay | undefined {
  if (type === RTN_UNREACHABLE) return priority === LAST_METRIC ? { way: 'unreachable' } : undefined;
  if (type !== RTN_UNICAST || priority !== (family === 'IPv4' ? 0 : IPV6_METRIC)) return undefined;
  if (nexthopId !== 0) return { way: 'nexthop', id: nexthopId };
  if (gateway) return { way: 'gateway', gateway, outInterface, onlink };
  return outInterface === 0 ? undefined : { way: 'device', outInterface };
}

/** A smaller packet than the link takes, or another source for what this node sends: `ip route change` gives ours both. */
function additionsOf({ mtu, advmss, source }: Route): string {
  if (mtu === undefined && advmss === undefined && !source) return '';
  return [
    mtu !== undefined && `mtu ${mtu}`,
    advmss !== undefined && `advmss ${advmss}`,
    source && `src ${formatIp(source)}`,
  ]
    .filter(Boolean)
    .join(' ');
}

function nexthopObject({ id, protocol, gateway, outInterface, onlink }: Nexthop): RouteObject | undefined {
  const isOurs = protocol === RTPROT_NODEPLANE && id >= FIRST_NEXTHOP_ID && id < FIRST_NEXTHOP_ID + NEXTHOP_IDS;
  return isOurs && gateway ? { kind: 'nexthop', id, gateway, outInterface, onlink } : undefined;
}

function neighbourObject(payload: Uint8Array): RouteObject | undefined {
  const { index, ip, lladdr, state } = decodeNeighbour(payload);
  if (!ip || state !== NUD_PERMANENT || specialRange(ip) !== undefined) return undefined;
  return { kind: 'neighbour', index, ip, mac: lladdr };
}

function fdbObject(payload: Uint8Array): RouteObject | undefined {
  const { index, ip, lladdr } = decodeNeighbour(payload);
  return ip && lladdr.length === 6 ? { kind: 'fdb', index, mac: lladdr, remote: ip } : undefined;
}

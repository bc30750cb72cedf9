import { addressBits, formatIp, type IpFamily, specialRange } from '../../core/index.ts';
import { listInSlices, type Netlink } from '../../netlink/index.ts';
import {
  decodeListedRoute,
  decodeNeighbour,
  decodeNexthop,
  type Neighbour,
  type Nexthop,
  neighbourListing,
  nexthopListing,
  type Route,
  routeListing,
} from '../../netlink/route/index.ts';
import { NUD_NOARP, NUD_PERMANENT, RT_TABLE_MAIN, RTN_UNICAST, RTN_UNREACHABLE } from '../../netlink/uapi/index.ts';
import {
  FIRST_NEXTHOP_ID,
  LAST_METRIC,
  metricOf,
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

function routeObject(route: Route | undefined): RouteObject | undefined {
  if (!route) return undefined;
  const way = wayOf(route);
  const { destination } = route;
  const additions = additionsOf(route);
  return { kind: 'route', destination, ...way, ...(additions !== '' && { additions }) };
}

function wayOf({ family, type, priority, tos, nexthopId, gateway, outInterface, onlink }: Route): RouteWay {
  const other = { way: 'other', type, priority, tos } as const;
  if (tos !== 0) return other;
  if (type === RTN_UNREACHABLE && priority === LAST_METRIC) return { way: 'unreachable' };
  if (type !== RTN_UNICAST || priority !== metricOf(family)) return other;
  if (nexthopId !== 0) return { way: 'nexthop', id: nexthopId };
  if (gateway) return { way: 'gateway', gateway, outInterface, onlink };
  return outInterface === 0 ? other : { way: 'device', outInterface };
}

/** A smaller packet than the link takes, or another source for what this node sends: `ip route change` gives ours both. */
function additionsOf({ mtu, advmss, otherMetrics, source }: Route): string {
  if (mtu === undefined && advmss === undefined && otherMetrics.length === 0 && !source) return '';
  return [
    mtu !== undefined && `mtu ${mtu}`,
    advmss !== undefined && `advmss ${advmss}`,
    ...otherMetrics,
    source && `src ${formatIp(source)}`,
  ]
    .filter(Boolean)
    .join(' ');
}

/** One without a gateway (`blackhole`) is one of ours that others changed. */
function nexthopObject({ id, family, protocol, gateway, outInterface, onlink }: Nexthop): RouteObject | undefined {
  const isOurs = protocol === RTPROT_NODEPLANE && id >= FIRST_NEXTHOP_ID && id < FIRST_NEXTHOP_ID + NEXTHOP_IDS;
  if (!isOurs || family === undefined) return undefined;
  const nowhere = { family, bytes: new Uint8Array(addressBits(family) / 8) };
  return { kind: 'nexthop', id, gateway: gateway ?? nowhere, outInterface, onlink };
}

function neighbourObject(payload: Uint8Array): RouteObject | undefined {
  const { index, ip, lladdr, state } = decodeNeighbour(payload);
  if (!ip || state !== NUD_PERMANENT || specialRange(ip) !== undefined) return undefined;
  return { kind: 'neighbour', index, ip, mac: lladdr };
}

function fdbObject(payload: Uint8Array): RouteObject | undefined {
  const entry = decodeNeighbour(payload);
  const { index, ip, lladdr, nexthopId } = entry;
  if (lladdr.length !== 6 || (!ip && nexthopId === undefined)) return undefined;
  const additions = fdbAdditionsOf(entry);
  return { kind: 'fdb', index, mac: lladdr, remote: ip, ...(additions !== '' && { additions }) };
}

/** Another port, network, link or nexthop object than the device has, or an end: `bridge fdb replace` gives ours all of them. */
function fdbAdditionsOf({ port, vni, via, nexthopId, state }: Neighbour): string {
  return [
    port !== undefined && `port ${port}`,
    vni !== undefined && `vni ${vni}`,
    via !== undefined && `via ${via}`,
    nexthopId !== undefined && `nhid ${nexthopId}`,
    (state & (NUD_PERMANENT | NUD_NOARP)) === 0 && 'dynamic',
  ]
    .filter(Boolean)
    .join(' ');
}

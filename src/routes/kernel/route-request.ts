import type { NetlinkRequest } from '../../netlink/index.ts';
import {
  deleteNeighbour,
  deleteNexthop,
  deleteRoute,
  newNeighbour,
  newNexthop,
  newRoute,
  type RouteSpec,
} from '../../netlink/route/index.ts';
import { RTN_UNICAST, RTN_UNREACHABLE } from '../../netlink/uapi/index.ts';
import { IPV6_METRIC, LAST_METRIC, type RouteObject, type RouteOperation, RTPROT_NODEPLANE } from './route-object.ts';

/** The netlink request that does it. */
export function requestOf({ action, object }: RouteOperation): NetlinkRequest {
  const isDeletion = action === 'delete';
  const replace = action === 'replace';
  switch (object.kind) {
    case 'nexthop': {
      const { id, gateway, outInterface, onlink } = object;
      if (isDeletion) return deleteNexthop(id);
      return newNexthop({ id, gateway, outInterface, onlink, protocol: RTPROT_NODEPLANE, replace });
    }
    case 'route':
      return isDeletion
        ? deleteRoute(identityOf(object))
        : newRoute({ ...identityOf(object), ...wayOf(object), replace });
    case 'neighbour': {
      const { index, ip, mac: lladdr } = object;
      // A packet may have made the kernel ask for this neighbour; its entry yields to ours.
      return isDeletion ? deleteNeighbour({ index, ip }) : newNeighbour({ index, ip, lladdr, replace: true });
    }
    case 'fdb': {
      const { index, mac: lladdr, remote: ip, additions } = object;
      const entry = { family: 'bridge', index, lladdr } as const;
      // The kernel finds the destination only by all that it has; without one the entry goes with all of them.
      if (isDeletion) return deleteNeighbour(additions === undefined ? { ...entry, ip } : entry);
      return newNeighbour({ ...entry, ip, replace: true });
    }
  }
}

type RouteToPods = Extract<RouteObject, { kind: 'route' }>;

/**
 * What tells a route of ours from all others. Where it leads is left out: a deletion that names a nexthop object is refused
 * (EINVAL) when that has gone.
 */
function identityOf(route: RouteToPods): RouteSpec {
  const { destination, way } = route;
  const common = { destination, protocol: RTPROT_NODEPLANE };
  if (way === 'other') return { ...common, type: route.type, priority: route.priority, tos: route.tos };
  if (way === 'unreachable') return { ...common, type: RTN_UNREACHABLE, priority: LAST_METRIC };
  const priority = destination.address.family === 'IPv4' ? undefined : IPV6_METRIC;
  return { ...common, type: RTN_UNICAST, priority };
}

function wayOf(route: RouteToPods): Partial<RouteSpec> {
  switch (route.way) {
    case 'unreachable':
    case 'other':
      return {};
    case 'nexthop':
      return { nexthopId: route.id };
    case 'gateway': {
      const { gateway, outInterface, onlink } = route;
      return { gateway, outInterface, onlink };
    }
    case 'device':
      return { outInterface: route.outInterface };
  }
}

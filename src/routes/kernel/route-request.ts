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
import { IPV6_METRIC, LAST_METRIC, RTPROT_NODEPLANE, type RouteObject, type RouteOperation } from './route-object.ts';

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
    case 'route': {
      const spec = routeSpec(object);
      return isDeletion ? deleteRoute(spec) : newRoute({ ...spec, replace });
    }
    case 'neighbour': {
      const { index, ip, mac: lladdr } = object;
      return isDeletion ? deleteNeighbour({ index, ip }) : newNeighbour({ index, ip, lladdr, replace });
    }
    case 'fdb': {
      const { index, mac: lladdr, remote: ip } = object;
      const entry = { family: 'bridge', index, lladdr, ip } as const;
      return isDeletion ? deleteNeighbour(entry) : newNeighbour({ ...entry, replace });
    }
  }
}

function routeSpec(route: Extract<RouteObject, { kind: 'route' }>): RouteSpec {
  const { destination } = route;
  const protocol = RTPROT_NODEPLANE;
  if (route.way === 'unreachable') return { destination, protocol, type: RTN_UNREACHABLE, priority: LAST_METRIC };
  const common = {
    destination,
    protocol,
    type: RTN_UNICAST,
    priority: destination.address.family === 'IPv4' ? undefined : IPV6_METRIC,
  };
  if (route.way === 'nexthop') return { ...common, nexthopId: route.id };
  const { gateway, outInterface, onlink } = route;
  return { ...common, gateway, outInterface, onlink };
}

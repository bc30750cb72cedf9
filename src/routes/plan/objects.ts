import type { Cidr } from '../../core/index.ts';
import type { Hop, RouteObject } from '../kernel/route-object.ts';
import type { PeerPlan } from './planner.ts';

/** The interfaces that routes lead through, by index. */
export interface Devices {
  readonly underlay: number;
  /** Undefined: there is no tunnel. */
  readonly tunnel: number | undefined;
}

/**
 * What the kernel has to hold for a peer.
 *
 * @param nexthopId of this peer's nexthop object; undefined: its routes name their gateway themselves
 */
export function peerObjects(plan: PeerPlan, devices: Devices, nexthopId: number | undefined): RouteObject[] {
  const objects: RouteObject[] = [];
  if (plan.kind === 'direct') {
    addRoutes(objects, plan, { outInterface: devices.underlay, gateway: plan.gateway, onlink: false }, nexthopId);
    return objects;
  }
  const { tunnel } = devices;
  if (tunnel === undefined) return objects;
  if (plan.kind === 'wireguard') {
    for (const destination of plan.ranges)
      objects.push({ kind: 'route', destination, way: 'device', outInterface: tunnel });
    return objects;
  }
  const { gateway, mac, remote } = plan;
  objects.push({ kind: 'neighbour', index: tunnel, ip: gateway, mac }, { kind: 'fdb', index: tunnel, mac, remote });
  addRoutes(objects, plan, { outInterface: tunnel, gateway, onlink: true }, nexthopId);
  return objects;
}

/**
 * What the kernel has to hold for this node's own pods: packets to addresses that no pod has must not go round between this
 * node and its default gateway. The bridge's route, or that of the pod, comes first.
 */
export function ownObjects(ranges: readonly Cidr[]): RouteObject[] {
  return ranges.map((destination) => ({ kind: 'route', destination, way: 'unreachable' }));
}

function addRoutes(objects: RouteObject[], { ranges }: PeerPlan, hop: Hop, id: number | undefined): void {
  const { outInterface, gateway, onlink } = hop;
  if (id !== undefined) objects.push({ kind: 'nexthop', id, outInterface, gateway, onlink });
  for (const destination of ranges) {
    if (id !== undefined) objects.push({ kind: 'route', destination, way: 'nexthop', id });
    else objects.push({ kind: 'route', destination, way: 'gateway', outInterface, gateway, onlink });
  }
}

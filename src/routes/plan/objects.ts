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
  const { ranges } = plan;
  if (plan.kind === 'direct') {
    const hop = { outInterface: devices.underlay, gateway: plan.gateway, onlink: false };
    return routesThrough(hop, ranges, nexthopId);
  }
  const { tunnel } = devices;
  if (tunnel === undefined) return [];
  if (plan.kind === 'wireguard')
    return ranges.map((destination) => ({ kind: 'route', destination, way: 'device', outInterface: tunnel }));
  const { gateway, mac, remote } = plan;
  return [
    { kind: 'neighbour', index: tunnel, ip: gateway, mac },
    { kind: 'fdb', index: tunnel, mac, remote },
    ...routesThrough({ outInterface: tunnel, gateway, onlink: true }, ranges, nexthopId),
  ];
}

/**
 * What the kernel has to hold for this node's own pods: packets to addresses that no pod has must not go round between this
 * node and its default gateway. The bridge's route, or that of the pod, comes first.
 */
export function ownObjects(ranges: readonly Cidr[]): RouteObject[] {
  return ranges.map((destination) => ({ kind: 'route', destination, way: 'unreachable' }));
}

function routesThrough(hop: Hop, ranges: readonly Cidr[], id: number | undefined): RouteObject[] {
  if (id === undefined) return ranges.map((destination) => ({ kind: 'route', destination, way: 'gateway', ...hop }));
  return [
    { kind: 'nexthop', id, ...hop },
    ...ranges.map((destination): RouteObject => ({ kind: 'route', destination, way: 'nexthop', id })),
  ];
}

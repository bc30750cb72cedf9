export { removeRoutes, routesPresent } from './cleanup.ts';
export type { FlannelRoutes, FlannelVtep } from './flannel/annotations.ts';
export { publishedAnnotations, withdrawnAnnotations } from './flannel/flannel-wants.ts';
export { OwnEnds } from './flannel/own-ends.ts';
export { placeSubnetEnv, subnetEnv } from './flannel/subnet-env.ts';
export { hasNexthops, NetlinkRouteKernel } from './kernel/netlink-route-kernel.ts';
export {
  DEVICE_ALIAS,
  type DeviceOperation,
  type PresentDevice,
  type RouteKernel,
  type UnderlayChoice,
} from './kernel/route-kernel.ts';
export {
  type Hop,
  keyOf,
  ROUTE_TYPE_WORDS,
  type RouteObject,
  type RouteOperation,
  type RouteWay,
  RTPROT_NODEPLANE,
  textOf,
} from './kernel/route-object.ts';
export { requestOf } from './kernel/route-request.ts';
export { isOurDevice } from './plan/device-diff.ts';
export { formerRangesWanted } from './plan/former-ranges.ts';
export { LIMITS as ROUTE_LIMITS } from './plan/limits.ts';
export type { PeerPlan } from './plan/planner.ts';
export { type RouteSettings, TUNNEL_NAMES, tunnelKind, tunnelMtu, WIREGUARD_NAME } from './plan/tunnel.ts';
export type { Attachment, RouteMode, Underlay } from './plan/underlay.ts';
export { unencryptedDropped } from './rules/encryption-chains.ts';
export type { RuleEvent, RuleObserver } from './rules/events.ts';
export { nodeAddresses } from './rules/node-elements.ts';
export { RouteRules, type RouteRulesOptions } from './rules/route-rules.ts';
export { hasRules, removeRules } from './rules/rules-kernel.ts';
export type { MasqueradeSettings, RuleSettings } from './rules/settings.ts';
export { RULES_TABLE } from './rules/table.ts';
export type { KernelPeer, KernelPeers, Reach } from './show/kernel-peer.ts';
export { readKernelPeers } from './show/read-kernel-peers.ts';
export { leavesTunnel, TUNNEL_KEPT_MS } from './sync/change-over.ts';
export type { OwnEnd, RouteEvent, RouteFigures, RouteObserver } from './sync/events.ts';
export { FamilyRoutes, type FamilyRoutesOptions } from './sync/family-routes.ts';
export type { DatedStanding } from './sync/tally.ts';
export type { WireguardEvent } from './wireguard/events.ts';
export { wireguardAnnotations, withdrawnWireguard } from './wireguard/identity.ts';
export { keyOfFile } from './wireguard/key-file.ts';
export { NetlinkWireguardKernel } from './wireguard/netlink-wireguard-kernel.ts';
export { wireguardMtu } from './wireguard/shared-tunnel.ts';
export type { DeviceSettings, WireguardKernel } from './wireguard/wireguard-kernel.ts';
export { WireguardTunnel, type WireguardTunnelOptions } from './wireguard/wireguard-tunnel.ts';

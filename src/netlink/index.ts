// The conversation.
export type { Attribute } from './attribute.ts';
export { appendMessage, type NetlinkMessage, type NetlinkRequest, readMessages } from './message.ts';
// nfacct and ctnetlink.
export { type Accounting, ensureAccounting, getAccounting } from './netfilter/accounting.ts';
export {
  deleteFlows,
  type FlowDestination,
  type FlowListing,
  flowDeletion,
  flowListing,
  listFlows,
  walkFlows,
} from './netfilter/conntrack.ts';
export { decodeFlow, type Flow, type FlowDirection, type FlowFilter } from './netfilter/flow.ts';
export { Netlink } from './netlink.ts';
// rtnetlink.
export {
  type AddressFilter,
  type AddressSpec,
  deleteAddress,
  type InterfaceAddress,
  listAddresses,
  newAddress,
} from './route/address.ts';
export { type BridgePort, getLink, type Link, type LinkSelector, listLinks } from './route/link.ts';
export {
  type BridgeSpec,
  deleteLink,
  type LinkChange,
  newBridge,
  newVeth,
  setBridgePort,
  setLink,
  type VethSpec,
} from './route/link-change.ts';
export {
  deleteNeighbour,
  listNeighbours,
  type Neighbour,
  type NeighbourFamily,
  type NeighbourFilter,
  type NeighbourSpec,
  newNeighbour,
} from './route/neighbour.ts';
export { deleteRoute, listRoutes, newRoute, type Route, type RouteFilter, type RouteSpec } from './route/route.ts';
export type { SocketOptions } from './socket.ts';
export type { NetlinkTransport } from './transport.ts';
// The kernel's constants, by header.
export * from './uapi/if.ts';
export * from './uapi/if-addr.ts';
export * from './uapi/if-link.ts';
export * from './uapi/neighbour.ts';
export * from './uapi/netlink.ts';
export * from './uapi/nfnetlink.ts';
export * from './uapi/nfnetlink-conntrack.ts';
export * from './uapi/rtnetlink.ts';

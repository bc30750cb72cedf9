// The conversation.
export type { Attribute } from './attribute.ts';
// Generic netlink: IPVS.
export {
  type Destination,
  decodeDestination,
  deleteDestination,
  destinationListing,
  type ListedDestination,
  newDestination,
  setDestination,
} from './generic/destination.ts';
export { resolveFamily } from './generic/family.ts';
export {
  getIpvsInfo,
  getIpvsTimeouts,
  type IpvsInfo,
  type IpvsTimeouts,
  setIpvsTimeouts,
} from './generic/ipvs-config.ts';
export type { IpvsFamily } from './generic/ipvs-request.ts';
export type { IpvsStatistics } from './generic/statistics.ts';
export {
  decodeVirtualServer,
  deleteVirtualServer,
  type ListedVirtualServer,
  newVirtualServer,
  setVirtualServer,
  type VirtualServer,
  type VirtualServerKey,
  virtualServerListing,
} from './generic/virtual-server.ts';
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
export {
  getIpsetProtocol,
  getSetTypeRevision,
  type IpsetProtocol,
} from './netfilter/ipset/capabilities.ts';
export {
  addMember,
  addMembers,
  deleteMember,
  deleteMembers,
  listMembers,
  type SetMember,
} from './netfilter/ipset/member.ts';
export {
  deleteIpSet,
  flushIpSet,
  type IpSet,
  listIpSets,
  newIpSet,
  renameIpSet,
  swapIpSets,
} from './netfilter/ipset/set.ts';
// nf_tables.
export { isBusy, isStaleGeneration, NftCommitError, type NftRefusal } from './netfilter/nftables/commit-error.ts';
export { type Datatype, type DatatypeName, datatype, typeLength } from './netfilter/nftables/datatypes.ts';
export type {
  CtKey,
  Expression,
  FibFlag,
  MetaKey,
  NatFlag,
  Register,
  Verdict,
} from './netfilter/nftables/expression.ts';
export {
  accept,
  cmp,
  counter,
  ct,
  drop,
  fib,
  goto,
  hostOrder32,
  immediate,
  interfaceName,
  jump,
  lookup,
  meta,
  networkOrder16,
  payload,
  random,
  returnToCaller,
  setMarkBits,
} from './netfilter/nftables/expressions.ts';
export { nftFamily } from './netfilter/nftables/family.ts';
export { intervalElements, intervalRanges, type KeyRange } from './netfilter/nftables/intervals.ts';
export type {
  BaseChain,
  ChainRef,
  CommitOptions,
  CommitReport,
  CounterRef,
  NftChain,
  NftChange,
  NftCounter,
  NftElement,
  NftElements,
  NftFamily,
  NftHook,
  NftObject,
  NftRef,
  NftRule,
  NftSet,
  NftTable,
  RuleRef,
  SetFlag,
  SetRef,
  TableRef,
} from './netfilter/nftables/model.ts';
export { watchNftables } from './netfilter/nftables/monitor.ts';
export type { NftEvent } from './netfilter/nftables/monitor-event.ts';
export { Nftables } from './netfilter/nftables/nftables.ts';
export type { NftReader, NftRuleset, NftWriter } from './netfilter/nftables/ruleset.ts';
export { expressionKey, sameExpressions } from './netfilter/nftables/same-rule.ts';
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
export {
  type BridgeVlan,
  deleteBridgeVlan,
  listBridgeVlans,
  newBridgeVlan,
  newOwnBridgeVlan,
} from './route/bridge-vlan.ts';
export { newDummy } from './route/dummy.ts';
export {
  answeredLink,
  type BridgePort,
  getLink,
  getLinks,
  type Link,
  type LinkSelector,
  linkQuery,
  listLinks,
} from './route/link.ts';
export {
  type BridgeSpec,
  deleteLink,
  type LinkChange,
  newBridge,
  newVeth,
  setBridge,
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
export { type IngressFilter, listIngressFilters, redirectIngress } from './route/tc-filter.ts';
export { type IfbSpec, newIfb } from './route/tc-ifb.ts';
export { listQdiscs, newIngressQdisc, type Qdisc, setTokenBucket, type TokenBucket } from './route/tc-qdisc.ts';
export { newVlan, type VlanSpec } from './route/vlan.ts';
export type { SocketOptions } from './socket.ts';
export type { NetlinkTransport } from './transport.ts';
// The kernel's constants, by header.
export * from './uapi/if.ts';
export * from './uapi/if-addr.ts';
export * from './uapi/if-link.ts';
export * from './uapi/ip-vs.ts';
export * from './uapi/neighbour.ts';
export * from './uapi/netlink.ts';
export * from './uapi/nfnetlink.ts';
export * from './uapi/nfnetlink-conntrack.ts';
export * from './uapi/rtnetlink.ts';

export {
  type AddressFilter,
  type AddressSpec,
  deleteAddress,
  type InterfaceAddress,
  listAddresses,
  newAddress,
} from './address.ts';
export { type BridgeListener, listBridgeListeners } from './devices/bridge-mdb.ts';
export {
  type BridgeVlan,
  deleteBridgeVlan,
  listBridgeVlans,
  newBridgeVlan,
  newOwnBridgeVlan,
} from './devices/bridge-vlan.ts';
export { newDummy } from './devices/dummy.ts';
export { type MacvlanMode, type MacvlanSpec, macvlanModeOf, newMacvlan } from './devices/macvlan.ts';
export { newVlan, type VlanSpec } from './devices/vlan.ts';
export { newVxlan, setVxlan, type Vxlan, type VxlanChange, type VxlanSpec } from './devices/vxlan.ts';
export { answeredLink, type BridgePort, getLink, type Link, type LinkSelector, linkQuery, listLinks } from './link.ts';
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
} from './link-change.ts';
export { hasLinkKind } from './link-kind.ts';
export { getLinkTraffic, type LinkTraffic } from './link-traffic.ts';
export { getNetnsId } from './lookup/netns-id.ts';
export { type NextHop, nextHopsOf } from './lookup/next-hops.ts';
export { listPolicyRules, type PolicyRule } from './lookup/policy-rules.ts';
export { lookUpRoute, type RouteAnswer, type RoutedFlow, type RouteQuestion } from './lookup/route-lookup.ts';
export {
  askForNeighbour,
  decodeNeighbour,
  deleteNeighbour,
  listNeighbours,
  type Neighbour,
  type NeighbourFamily,
  type NeighbourFilter,
  type NeighbourSpec,
  neighbourListing,
  newNeighbour,
} from './neighbour.ts';
export {
  decodeNexthop,
  deleteNexthop,
  listNexthops,
  type Nexthop,
  type NexthopFilter,
  type NexthopSpec,
  newNexthop,
  nexthopListing,
} from './nexthop.ts';
export { RequestForm } from './request-form.ts';
export {
  decodeListedRoute,
  deleteRoute,
  listRoutes,
  newRoute,
  type Route,
  type RouteFilter,
  type RouteSpec,
  routeListing,
} from './route.ts';
export {
  type IngressFilter,
  listActingFilters,
  listIngressFilters,
  listLinkFilters,
  redirectIngress,
} from './tc-filter.ts';
export { type IfbSpec, newIfb } from './tc-ifb.ts';
export { slowestHtbClass } from './tc-limits.ts';
export {
  deleteIngressQdisc,
  listQdiscs,
  newIngressQdisc,
  type Qdisc,
  setTokenBucket,
  type TokenBucket,
} from './tc-qdisc.ts';
export { type NetworkEvent, type NetworkInterest, type NetworkWatch, watchNetwork } from './watch-network.ts';

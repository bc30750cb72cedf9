export {
  IP_VS_SVC_F_SCHED_MH_FALLBACK,
  IP_VS_SVC_F_SCHED_MH_PORT,
  IP_VS_SVC_F_SCHED_SH_FALLBACK,
  IPVS_GENL_NAME,
} from '../uapi/ip-vs.ts';
export { type IpvsConnection, listIpvsConnections } from './connections.ts';
export {
  type Destination,
  decodeDestination,
  deleteDestination,
  destinationListing,
  type ForeignSettings,
  type ListedDestination,
  newDestination,
  setDestination,
} from './destination.ts';
export { getIpvsTimeouts, type IpvsTimeouts, setIpvsTimeouts } from './ipvs-config.ts';
export type { IpvsFamily } from './ipvs-request.ts';
export type { IpvsStatistics } from './statistics.ts';
export {
  decodeVirtualServer,
  deleteVirtualServer,
  familyOf,
  type ListedVirtualServer,
  newVirtualServer,
  setVirtualServer,
  type VirtualServer,
  type VirtualServerKey,
  virtualServerListing,
} from './virtual-server.ts';

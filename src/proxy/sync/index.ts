export { bisect } from './bisect.ts';
export { changeOf } from './changes.ts';
export {
  addTouched,
  nodePortAddressTest,
  type StaleFlows,
  staleFlows,
  type TouchedPorts,
  touchedBy,
  whereaboutsOf,
} from './conntrack.ts';
export type { Commit, Dataplane, LeftOutPort } from './dataplane.ts';
export type { ProxyEvent, ProxyEventBody, ProxyObserver } from './events.ts';
export { FamilyProxy } from './family-proxy.ts';
export { type FamilyProxyOptions, type LocalAddresses, localAddressesOf } from './family-proxy-options.ts';
export { type Blame, type LeftOut, LeftOutPorts } from './left-out.ts';

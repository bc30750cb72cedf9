export { bisect } from './bisect.ts';
export { changeOf } from './changes.ts';
export {
  addTouched,
  nodePortAddressTest,
  portNumbers,
  type StaleFlows,
  staleFlows,
  type TouchedPorts,
  touchedBy,
} from './conntrack.ts';
export type { Commit, Dataplane, LeftOutPort } from './dataplane.ts';
export type { ProxyEvent, ProxyEventBody, ProxyObserver } from './events.ts';
export { FamilyProxy } from './family-proxy.ts';
export type { FamilyProxyOptions, LocalAddresses } from './family-proxy-options.ts';
export { type Blame, LeftOutPorts } from './left-out.ts';

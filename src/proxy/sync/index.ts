export { bisect } from './bisect.ts';
export { type Change, changeOf } from './changes.ts';
export {
  addTouched,
  type NodePortAddressInput,
  nodePortAddressTest,
  type StaleFlows,
  staleFlows,
  type TouchedPort,
  type TouchedPorts,
  type TrackedFlow,
} from './conntrack.ts';
export type { Commit, Dataplane, Drift, LeftOutPort, ProxyMode } from './dataplane.ts';
export type { ProxyEvent, ProxyEventBody, ProxyObserver } from './events.ts';
export { FamilyProxy, type FamilyProxyOptions, type FlowKeeper, type LocalAddresses } from './family-proxy.ts';
export { type Blame, LeftOutPorts } from './left-out.ts';

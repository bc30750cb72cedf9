export { AddressRules, type AddressRulesInput } from './address-rules.ts';
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
export { type Endpoint, type EndpointsWanted, endpointGroup, endpointsOf, type ServiceEndpoints } from './endpoint.ts';
export type { ProxyEvent, ProxyObserver } from './events.ts';
export { FamilyProxy, type FamilyProxyOptions, type FlowKeeper, type LocalAddresses } from './family-proxy.ts';
export { type HealthAnswer, ProxyHealth, type ProxyHealthOptions } from './health.ts';
export { findRefused } from './left-out.ts';
export { ProxyMetrics } from './metrics.ts';
export {
  type LocalDetection,
  makeNodePlan,
  type NodePlanInput,
  type NodeSettings,
  podCidrsOf,
  primaryFamilyOf,
  zoneOf,
} from './node-plan.ts';
export { type PlanContext, planService, type ServicePlan, wantedSets } from './plan.ts';
export { Planner, type PlannerOptions, type PlanUpdate, type ServiceProblem } from './planner.ts';
export { type SyncCheck, SyncRunner, type SyncRunnerOptions } from './runner.ts';
export { sameNodePlan, samePortPlan } from './same-plan.ts';
export { type Place, type Selection, selectEndpoints, type Wanted } from './select.ts';
export { type EndpointReason, type ExplainedEndpoint, explainSelection, isInUse } from './select-reasons.ts';
export { type ServiceHealthCheck, serviceHealthCheck } from './service-health.ts';
export type {
  LocalDetector,
  NodePlan,
  Plan,
  PlanDelta,
  ServicePortPlan,
  TrafficPolicy,
  Verdict,
} from './service-plan.ts';
export { isExternallyAccessible, type ServicePort, servicePortsOf } from './service-port.ts';
export type { ServiceStore } from './service-store.ts';

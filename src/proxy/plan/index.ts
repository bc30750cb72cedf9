export { AddressRules, API_SERVER_SERVICE } from './bounds/address-rules.ts';
export { RESTRICTIONS } from './bounds/findings.ts';
export { LOCALHOST_STAND_INS } from './bounds/stand-ins.ts';
export { byOwner, type PortClaim } from './claim-order.ts';
export { type Endpoint, endpointsOf } from './endpoint.ts';
export type { ExplainedPort } from './explain-service.ts';
export { translatedNodePortAddresses } from './localhost.ts';
export {
  makeNodePlan,
  type NodeSettings,
  podCidrsOf,
  primaryFamilyOf,
  zoneOf,
} from './node-plan.ts';
export { isForProxy, proxyResources, serviceOfSlice } from './objects/selectors.ts';
export { ServiceObjects } from './objects/service-objects.ts';
export type { ServiceStore } from './objects/service-store.ts';
export { planService } from './plan.ts';
export type { NoLocalEndpoints, PlanUpdate, RestrictedServices } from './plan-update.ts';
export { Planner, type PlannerOptions } from './planner.ts';
export { sameNodePlan, samePortPlan } from './same-plan.ts';
export { type EndpointReason, type ExplainedEndpoint, isInUse } from './select-reasons.ts';
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
export { type ServiceHint, servicePortsOf } from './service-port.ts';
export type { PortTroubles } from './troubles/trouble-book.ts';
export type { PortTrouble, TroubleCause } from './troubles/troubles.ts';

export { AddressRules, type AddressRulesInput, API_SERVER_SERVICE } from './bounds/address-rules.ts';
export { RESTRICTIONS } from './bounds/findings.ts';
export { type Endpoint, type EndpointsWanted, endpointGroup, endpointsOf, type ServiceEndpoints } from './endpoint.ts';
export {
  type LocalDetection,
  makeNodePlan,
  type NodePlanInput,
  type NodeSettings,
  podCidrsOf,
  primaryFamilyOf,
  zoneOf,
} from './node-plan.ts';
export { proxyResources } from './objects/selectors.ts';
export { ServiceObjects, type TouchedObjects } from './objects/service-objects.ts';
export { type PlanContext, planService, type ServicePlan, wantedSets } from './plan.ts';
export {
  type NoLocalEndpoints,
  Planner,
  type PlannerOptions,
  type PlanUpdate,
  type RestrictedServices,
  type ServiceProblem,
} from './planner.ts';
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
export { isExternallyAccessible, type ServiceHint, type ServicePort, servicePortsOf } from './service-port.ts';
export type { ServiceStore } from './service-store.ts';

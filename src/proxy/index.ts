export type { Commit, Dataplane, Drift, ProxyMode } from './dataplane.ts';
export type { Endpoint } from './endpoint.ts';
export type {
  LocalDetector,
  NodePlan,
  Plan,
  PlanDelta,
  ServicePortPlan,
  TrafficPolicy,
  Verdict,
} from './service-plan.ts';

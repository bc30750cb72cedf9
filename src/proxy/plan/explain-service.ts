import type { Steps } from '../../core/index.ts';
import type { EndpointSlice, Service } from '../../kube/index.ts';
import { endpointGroup, endpointsOf } from './endpoint.ts';
import { mostEndpoints, type PlanContext, wantedSets } from './plan.ts';
import { type ExplainedEndpoint, explainSelection } from './select-reasons.ts';
import type { ServicePortPlan } from './service-plan.ts';
import { servicePortsOf } from './service-port.ts';

/** A Service port as planned, with all of its endpoints, used or not. */
export interface ExplainedPort {
  readonly port: ServicePortPlan;
  readonly endpoints: readonly ExplainedEndpoint[];
}

/** What is explained, and from what. */
export interface ExplainedService {
  readonly service: Service;
  /** Its EndpointSlices of all address types. */
  readonly slices: readonly EndpointSlice[];
  /** Its ports as they were planned. */
  readonly planned: readonly ServicePortPlan[];
}

/**
 * Says why each endpoint of a Service is used or not, by the same steps that planned it. A port that changed since it was
 * planned has the endpoints that it will have.
 */
export function* explainService(
  { service, slices, planned }: ExplainedService,
  context: PlanContext,
): Steps<readonly ExplainedPort[]> {
  const { family, nodeName, endpointCap: cap } = context;
  const asked = servicePortsOf(service, family, context).ports;
  if (asked.length === 0) return [];
  const most = mostEndpoints(asked);
  const { groups } = yield* endpointsOf(slices, { family, nodeName, ports: asked, most, cap: cap ?? most });
  const names = new Map(asked.map(({ key, portName }) => [key, portName]));
  const explained: ExplainedPort[] = [];
  for (const port of planned) {
    const portName = names.get(port.key);
    if (portName === undefined) continue;
    const endpoints = groups.get(endpointGroup(portName, port.protocol)) ?? [];
    explained.push({ port, endpoints: explainSelection(endpoints, wantedSets(port), context) });
    yield;
  }
  return explained;
}

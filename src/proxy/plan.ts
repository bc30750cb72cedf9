import type { IpFamily } from '../core/index.ts';
import type { EndpointSlice, Service } from '../kube/index.ts';
import { type Endpoint, endpointGroup, endpointsOf } from './endpoint.ts';
import { type Place, type Selection, selectEndpoints, type Wanted } from './select.ts';
import { type ServiceHealthCheck, serviceHealthCheck } from './service-health.ts';
import type { ServicePortPlan, TrafficPolicy, Verdict } from './service-plan.ts';
import { isExternallyAccessible, type ServicePort, servicePortsOf } from './service-port.ts';

/** What planning a Service depends on besides its objects: the family and where we are. */
export interface PlanContext extends Place {
  readonly family: IpFamily;
  /** Whether external IPs are served (feature gate AllowServiceExternalIPs). @default true */
  readonly externalIps?: boolean;
}

/** A Service with its endpoints, ready for any dataplane. */
export interface ServicePlan {
  readonly ports: readonly ServicePortPlan[];
  /** What in the Service or its slices could not be used, in words. */
  readonly problems: readonly string[];
  /** What its load balancer asks this node; missing: nothing. */
  readonly healthCheck?: ServiceHealthCheck;
}

const NOTHING: ServicePlan = { ports: [], problems: [] };

/**
 * Plans one Service in one family. Pure: same objects, same plan.
 *
 * @param service undefined when it does not exist (any more): its slices alone mean nothing
 * @param slices its EndpointSlices of all address types
 */
export function planService(
  service: Service | undefined,
  slices: readonly EndpointSlice[],
  context: PlanContext,
): ServicePlan {
  if (!service) return NOTHING;
  const { ports, problems } = servicePortsOf(service, context.family, { externalIps: context.externalIps ?? true });
  if (ports.length === 0) return { ports: [], problems };
  const endpoints = endpointsOf(slices, context.family, context.nodeName);
  const healthCheck = serviceHealthCheck(ports, endpoints);
  return {
    ports: ports.map((port) =>
      planPort(port, endpoints.groups.get(endpointGroup(port.portName, port.protocol)) ?? [], context),
    ),
    problems: [...problems, ...endpoints.problems],
    ...(healthCheck && { healthCheck }),
  };
}

/**
 * Which endpoint sets a Service port needs. An external destination needs the Cluster set even under policy Local: pods
 * and the node itself are short-circuited to it.
 */
export function wantedSets(
  port: Pick<ServicePort, 'nodePort' | 'externalIps' | 'loadBalancerVips' | 'internalPolicy' | 'externalPolicy'>,
): Wanted {
  const external = isExternallyAccessible(port);
  return {
    cluster: external || port.internalPolicy === 'Cluster',
    local: port.internalPolicy === 'Local' || (external && port.externalPolicy === 'Local'),
  };
}

function planPort(port: ServicePort, endpoints: readonly Endpoint[], place: Place): ServicePortPlan {
  const { portName: _, ...destination } = port;
  const selection = selectEndpoints(endpoints, wantedSets(port), place);
  return {
    ...destination,
    ...selection,
    ...(port.protocol !== 'TCP' && { servingEndpoints: endpoints.filter((endpoint) => endpoint.serving) }),
    internalVerdict: verdictOf(port.internalPolicy, selection),
    externalVerdict: verdictOf(port.externalPolicy, selection),
  };
}

/** Refuse when nobody anywhere can serve; stay silent when only this node cannot, so that clients try again elsewhere. */
function verdictOf(policy: TrafficPolicy, { hasAnyEndpoints, localEndpoints }: Selection): Verdict {
  if (!hasAnyEndpoints) return 'reject';
  return policy === 'Local' && localEndpoints.length === 0 ? 'drop' : 'forward';
}

import { type IpFamily, type Steps, trimmed } from '../../core/index.ts';
import type { EndpointSlice, Service } from '../../kube/index.ts';
import type { DestinationOwners } from './bounds/destination-owners.ts';
import type { Restriction } from './bounds/findings.ts';
import { LIMITS } from './bounds/limits.ts';
import { type Endpoint, endpointGroup, endpointsOf } from './endpoint.ts';
import { type Place, type Selection, selectEndpoints, type Wanted } from './select.ts';
import { type ServiceHealthCheck, serviceHealthCheck } from './service-health.ts';
import type { ServicePortPlan, TrafficPolicy, Verdict } from './service-plan.ts';
import {
  type Allowed,
  isExternallyAccessible,
  type ServicePort,
  type ServicePorts,
  servicePortsOf,
} from './service-port.ts';

/** What planning a Service depends on besides its objects: the family, where we are, and what others have. */
export interface PlanContext extends Place, Allowed {
  readonly family: IpFamily;
  /** Who has which destination. @default every Service has what it asks for */
  readonly owners?: DestinationOwners;
  /** So many endpoints x ports at most, besides LIMITS. @default no further bound */
  readonly endpointCap?: number;
}

/** A Service with its endpoints, ready for any dataplane. */
export interface ServicePlan {
  readonly ports: readonly ServicePortPlan[];
  /** What in the Service or its slices could not be used, in words. */
  readonly problems: readonly string[];
  /** Why parts are not served. @default none are */
  readonly restrictions?: ReadonlySet<Restriction>;
  /** Endpoints x ports it would have without `endpointCap`. @default 0 */
  readonly endpointsWanted?: number;
  /** What its load balancer asks this node; missing: nothing. */
  readonly healthCheck?: ServiceHealthCheck;
}

const NO_PROBLEMS: readonly string[] = [];
const NOTHING: ServicePlan = { ports: [], problems: NO_PROBLEMS };

/**
 * Plans one Service in one family. Pure: same objects, same plan. In steps, because one Service may have 20,000 endpoints.
 *
 * @param service undefined when it does not exist (any more): its slices alone mean nothing
 * @param slices its EndpointSlices of all address types
 */
export function* planService(
  service: Service | undefined,
  slices: readonly EndpointSlice[],
  context: PlanContext,
): Steps<ServicePlan> {
  return service ? yield* planPorts(servicePortsOf(service, context.family, context), slices, context) : NOTHING;
}

/** As `planService`, for a Service that has been read: what `servicePortsOf` made of it in the same context. */
export function* planPorts(
  asked: ServicePorts,
  slices: readonly EndpointSlice[],
  context: PlanContext,
): Steps<ServicePlan> {
  const { family, nodeName, owners, endpointCap: cap } = context;
  if (asked.ports.length === 0) return { ports: [], problems: asked.problems, ...restrictionsOf(asked.restrictions) };
  const owned = owners?.keepOwned(asked.ports);

  yield;
  const most = mostEndpoints(asked.ports);
  const endpoints = yield* endpointsOf(slices, { family, nodeName, ports: asked.ports, most, cap: cap ?? most });
  yield;
  const healthCheck = serviceHealthCheck(asked.ports, endpoints);
  const ports: ServicePortPlan[] = [];
  for (const port of owned?.ports ?? asked.ports) {
    ports.push(planPort(port, endpoints.groups.get(endpointGroup(port.portName, port.protocol)) ?? [], context));
    yield;
  }
  const problems = [...asked.problems, ...(owned?.problems ?? []), ...endpoints.problems];
  return {
    ports: trimmed(ports),
    problems: problems.length > 0 ? problems : NO_PROBLEMS,
    // Each of them is told among the problems.
    ...(problems.length > 0 &&
      restrictionsOf([...asked.restrictions, ...(owned?.restrictions ?? []), ...endpoints.restrictions])),
    ...(endpoints.count > 0 && { endpointsWanted: endpoints.count }),
    ...(healthCheck && { healthCheck }),
  };
}

function restrictionsOf(restrictions: Iterable<Restriction>): Pick<ServicePlan, 'restrictions'> {
  const all = new Set(restrictions);
  return all.size > 0 ? { restrictions: all } : {};
}

/** Every destination of a port leads to all of its endpoints. */
export function mostEndpoints(ports: readonly ServicePort[]): number {
  const destinations = Math.max(
    ...ports.map(({ externalIps, loadBalancerVips }) => 2 + externalIps.length + loadBalancerVips.length),
  );
  return Math.min(LIMITS.endpoints, Math.floor(LIMITS.endpointElements / destinations));
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
  const selection = selectEndpoints(endpoints, wantedSets(port), place);
  // One literal: spread into another, so many fields take 800 bytes in place of 250.
  const planned: ServicePortPlan = {
    key: port.key,
    serviceName: port.serviceName,
    name: port.name,
    protocol: port.protocol,
    clusterIp: port.clusterIp,
    port: port.port,
    nodePort: port.nodePort,
    externalIps: port.externalIps,
    loadBalancerVips: port.loadBalancerVips,
    sourceRanges: port.sourceRanges,
    affinitySeconds: port.affinitySeconds,
    healthCheckNodePort: port.healthCheckNodePort,
    internalPolicy: port.internalPolicy,
    externalPolicy: port.externalPolicy,
    clusterEndpoints: selection.clusterEndpoints,
    localEndpoints: selection.localEndpoints,
    hasAnyEndpoints: selection.hasAnyEndpoints,
    internalVerdict: verdictOf(port.internalPolicy, selection),
    externalVerdict: verdictOf(port.externalPolicy, selection),
  };
  if (port.hint === undefined && port.protocol === 'TCP') return planned;
  return {
    ...planned,
    ...(port.hint !== undefined && { hint: port.hint }),
    ...(port.protocol !== 'TCP' && { servingEndpoints: endpoints.filter((endpoint) => endpoint.serving) }),
  };
}

/** Refuse when nobody anywhere can serve; stay silent when only this node cannot, so that clients try again elsewhere. */
function verdictOf(policy: TrafficPolicy, { hasAnyEndpoints, localEndpoints }: Selection): Verdict {
  if (!hasAnyEndpoints) return 'reject';
  return policy === 'Local' && localEndpoints.length === 0 ? 'drop' : 'forward';
}

import { formatIp } from '../../core/index.ts';
import { endpointGroup, type ServiceEndpoints } from './endpoint.ts';
import type { ServicePort } from './service-port.ts';

/** What a cloud load balancer asks this node about one Service before it sends traffic here. */
export interface ServiceHealthCheck {
  /** `ns/name`. */
  readonly serviceName: string;
  /** `spec.healthCheckNodePort`, the port to answer on. */
  readonly port: number;
  /** Different addresses of ready endpoints on this node, over all ports of the Service. */
  readonly localEndpoints: number;
}

/**
 * The health check of a Service in one family; undefined when it has none (it is not of type LoadBalancer with
 * externalTrafficPolicy Local, or not served in this family).
 *
 * Terminating endpoints do not count although they may still be used: the load balancer shall stop sending while they
 * finish (KEP-1669). The endpoint selection is not asked, because a Service whose load balancer is still being made has
 * no external address yet and selects nothing, but its health check decides whether it gets one.
 *
 * @param ports all ports of the Service, from `servicePortsOf`
 * @param endpoints all its endpoints in the family, from `endpointsOf`
 */
export function serviceHealthCheck(
  ports: readonly ServicePort[],
  { groups }: Pick<ServiceEndpoints, 'groups'>,
): ServiceHealthCheck | undefined {
  const [first] = ports;
  if (!first || first.healthCheckNodePort === 0) return undefined;
  const addresses = new Set<string>();
  for (const { portName, protocol } of ports) {
    for (const { ip, isLocal, ready } of groups.get(endpointGroup(portName, protocol)) ?? []) {
      if (isLocal && ready) addresses.add(formatIp(ip));
    }
  }
  return { serviceName: first.serviceName, port: first.healthCheckNodePort, localEndpoints: addresses.size };
}

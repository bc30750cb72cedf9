import { type FieldReport, integer, listOf, oneOf, type Reader, record, required, text } from './field-reader.ts';
import type { LoadBalancerIngress, Protocol, Service, ServicePortSpec, ServiceSpec } from './types.ts';
import {
  addressOrEmpty,
  clusterIp,
  portName,
  portNumber,
  portNumberOrNone,
  protocol,
  trafficPolicy,
} from './value-readers.ts';

const portList = listOf(
  record<ServicePortSpec>({
    name: portName,
    protocol,
    port: required(portNumber),
    nodePort: portNumberOrNone,
  }),
);

/** The API's rules that make a port identifiable by its name and by its number: without them two ports would share a rule. */
const servicePorts: Reader<readonly ServicePortSpec[]> = (value, report) => {
  const known = report.problems.length;
  const ports = portList(value, report);
  if (ports && report.problems.length === known) checkPortsDistinct(ports, report);
  return ports;
};

function checkPortsDistinct(ports: readonly ServicePortSpec[], report: FieldReport): void {
  const names = new Set<string>();
  const numbers: Readonly<Record<Protocol, Set<number>>> = { TCP: new Set(), UDP: new Set(), SCTP: new Set() };
  for (const [index, { name = '', port, protocol = 'TCP' }] of ports.entries()) {
    const problem = (field: string, message: string): void =>
      report.within(index, () => report.within(field, () => void report.problem(message)));
    if (name === '' && ports.length > 1) problem('name', 'Required when a Service has more than one port');
    else if (names.has(name)) problem('name', `Another port of this Service is already named "${name}"`);
    if (numbers[protocol].has(port)) problem('port', `Another port of this Service is already ${port}/${protocol}`);
    names.add(name);
    numbers[protocol].add(port);
  }
}

// externalIPs and loadBalancerSourceRanges stay unchecked text: kube-proxy skips what it cannot read there, and so do we
// where they are used.
export const serviceSpec = record<ServiceSpec>({
  type: oneOf('ClusterIP', 'NodePort', 'LoadBalancer', 'ExternalName'),
  clusterIP: clusterIp,
  clusterIPs: listOf(clusterIp),
  ipFamilies: listOf(oneOf('IPv4', 'IPv6')),
  ports: servicePorts,
  externalIPs: listOf(text),
  externalTrafficPolicy: trafficPolicy,
  internalTrafficPolicy: trafficPolicy,
  sessionAffinity: oneOf('None', 'ClientIP'),
  sessionAffinityConfig: record<NonNullable<ServiceSpec['sessionAffinityConfig']>>({
    clientIP: record<{ readonly timeoutSeconds?: number }>({
      timeoutSeconds: integer('a number of seconds', 1, 86400),
    }),
  }),
  loadBalancerSourceRanges: listOf(text),
  healthCheckNodePort: portNumberOrNone,
});

type ServiceStatus = NonNullable<Service['status']>;

export const serviceStatus = record<ServiceStatus>({
  loadBalancer: record<NonNullable<ServiceStatus['loadBalancer']>>({
    ingress: listOf(record<LoadBalancerIngress>({ ip: addressOrEmpty, ipMode: oneOf('VIP', 'Proxy') })),
  }),
});

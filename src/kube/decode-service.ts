import { type FieldReport, integer, listOf, oneOf, type Reader, record, required, text } from './field-reader.ts';
import type { LoadBalancerIngress, Service, ServicePortSpec, ServiceSpec } from './types.ts';
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
  const numbers = new Set<string>();
  ports.forEach((port, index) => {
    const name = port.name ?? '';
    const number = `${port.port}/${port.protocol ?? 'TCP'}`;
    report.within(index, () => {
      if (name === '' && ports.length > 1) {
        report.within('name', () => report.problem('Required when a Service has more than one port'));
      } else if (names.has(name)) {
        report.within('name', () => report.problem(`Another port of this Service is already named "${name}"`));
      }
      if (numbers.has(number)) {
        report.within('port', () => report.problem(`Another port of this Service is already ${number}`));
      }
    });
    names.add(name);
    numbers.add(number);
  });
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

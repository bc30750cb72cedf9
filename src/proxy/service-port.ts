import { type Cidr, formatCidr, formatIp, type IpAddress, type IpFamily, tryParseIp } from '../core/index.ts';
import {
  IPVS_SCHEDULER_ANNOTATION,
  objectName,
  type Protocol,
  type Service,
  type ServicePortSpec,
} from '../kube/index.ts';
import type { ServicePortPlan } from './service-plan.ts';
import { tryParseCidr } from './try-parse-cidr.ts';

/** One port of a Service as one family sees it: everything the plan says before endpoints are known. */
export type ServicePort = Pick<
  ServicePortPlan,
  | 'key'
  | 'serviceName'
  | 'name'
  | 'protocol'
  | 'clusterIp'
  | 'port'
  | 'nodePort'
  | 'externalIps'
  | 'loadBalancerVips'
  | 'sourceRanges'
  | 'affinitySeconds'
  | 'healthCheckNodePort'
  | 'ipvsScheduler'
  | 'internalPolicy'
  | 'externalPolicy'
> & {
  /** Name of the port, possibly empty: together with the protocol it finds the endpoints. */
  readonly portName: string;
};

export interface ServicePorts {
  readonly ports: readonly ServicePort[];
  /** What could not be used, in words that name the field; the rest of the Service is served all the same. */
  readonly problems: readonly string[];
}

/** What the API server fills in for `sessionAffinity: ClientIP` without a timeout, and the largest it accepts. */
const DEFAULT_AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;

const PROTOCOLS: readonly string[] = ['TCP', 'UDP', 'SCTP'] satisfies Protocol[];

/**
 * The ports of a Service in one family; none when the Service has no ClusterIP of the family (then its other addresses
 * of the family are ignored too, as kube-proxy does), is headless, or only a DNS alias. Never throws for bad values.
 *
 * @param allowed what Services may ask for; external IPs let anybody who may create Services take over traffic to any
 *   address (CVE-2020-8554)
 */
export function servicePortsOf(
  service: Service,
  family: IpFamily,
  allowed: { readonly externalIps: boolean } = { externalIps: true },
): ServicePorts {
  const problems: string[] = [];
  const clusterIp = clusterIpOf(service, family, problems);
  if (!clusterIp) return { ports: [], problems };

  const { spec } = service;
  const serviceName = objectName(service);
  const externalIps = addressesOf(
    allowed.externalIps ? (spec.externalIPs ?? []) : [],
    family,
    'spec.externalIPs',
    problems,
  );
  const { loadBalancerVips, sourceRanges } = loadBalancerOf(service, family, problems);
  const affinitySeconds = affinityOf(service, problems);
  const healthCheckNodePort = healthCheckNodePortOf(service, problems);
  const ipvsScheduler = ipvsSchedulerOf(service, problems);

  const ports = new Map<string, ServicePort>();
  for (const [index, portSpec] of (spec.ports ?? []).entries()) {
    const port = readPort(portSpec, `spec.ports[${index}]`, problems);
    if (!port) continue;
    const name = port.portName === '' ? serviceName : `${serviceName}:${port.portName}`;
    const key = `${serviceName}:${port.portName}/${port.protocol}`;
    if (ports.has(key)) {
      problems.push(`spec.ports[${index}] has the name and protocol of an earlier port and is ignored`);
      continue;
    }
    const accessible = isExternallyAccessible({ nodePort: port.nodePort, externalIps, loadBalancerVips });
    ports.set(key, {
      key,
      serviceName,
      name,
      ...port,
      clusterIp,
      externalIps,
      loadBalancerVips,
      sourceRanges,
      affinitySeconds,
      healthCheckNodePort,
      ...(ipvsScheduler && { ipvsScheduler }),
      internalPolicy: spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
      // A policy for external traffic says nothing on a port that has no external address.
      externalPolicy: accessible && spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    });
  }
  return { ports: [...ports.values()], problems };
}

/** Whether the port has any destination besides its ClusterIP. */
export function isExternallyAccessible(
  port: Pick<ServicePort, 'nodePort' | 'externalIps' | 'loadBalancerVips'>,
): boolean {
  return port.nodePort !== 0 || port.externalIps.length > 0 || port.loadBalancerVips.length > 0;
}

/**
 * The Service's ClusterIP of this family. The API server keeps `clusterIPs[i]` of the family `ipFamilies[i]` and
 * `clusterIPs[0]` equal to `clusterIP`; a manifest may give only some of these fields, so all of them are looked at.
 */
function clusterIpOf(service: Service, family: IpFamily, problems: string[]): IpAddress | undefined {
  const { spec } = service;
  const primary = spec.clusterIP ?? spec.clusterIPs?.[0] ?? '';
  if (primary === '' || primary === 'None' || spec.type === 'ExternalName') return undefined;
  if (spec.ipFamilies?.length && !spec.ipFamilies.includes(family)) return undefined;
  const texts = new Set([primary, ...(spec.clusterIPs ?? [])]);
  return addressesOf([...texts], family, 'spec.clusterIPs', problems)[0];
}

function readPort(
  spec: ServicePortSpec,
  field: string,
  problems: string[],
): Pick<ServicePort, 'portName' | 'protocol' | 'port' | 'nodePort'> | undefined {
  const protocol = spec.protocol ?? 'TCP';
  if (!PROTOCOLS.includes(protocol)) {
    problems.push(`${field}.protocol is "${protocol}", which is none of ${PROTOCOLS.join(', ')}; the port is ignored`);
    return undefined;
  }
  if (!isPortNumber(spec.port)) {
    problems.push(`${field}.port is "${spec.port}", which is not a port number; the port is ignored`);
    return undefined;
  }
  let nodePort = spec.nodePort ?? 0;
  if (nodePort !== 0 && !isPortNumber(nodePort)) {
    problems.push(`${field}.nodePort is "${nodePort}", which is not a port number; no NodePort is opened`);
    nodePort = 0;
  }
  return { portName: spec.name ?? '', protocol, port: spec.port, nodePort };
}

/**
 * The virtual IPs a load balancer delivers to this node, and who may use them. The Service's type is not asked, as in
 * kube-proxy; entries with `ipMode: Proxy` are not for the node to handle.
 */
function loadBalancerOf(
  service: Service,
  family: IpFamily,
  problems: string[],
): Pick<ServicePort, 'loadBalancerVips' | 'sourceRanges'> {
  const texts: string[] = [];
  for (const entry of service.status?.loadBalancer?.ingress ?? []) {
    if (entry.ip && (entry.ipMode ?? 'VIP') === 'VIP') texts.push(entry.ip);
  }
  const loadBalancerVips = addressesOf(texts, family, 'status.loadBalancer.ingress', problems);

  const field = 'spec.loadBalancerSourceRanges';
  const found = new Map<string, Cidr>();
  let unreadable = 0;
  for (const text of service.spec.loadBalancerSourceRanges ?? []) {
    const cidr = tryParseCidr(text.trim());
    if (cidr) found.set(formatCidr(cidr), cidr);
    else {
      unreadable++;
      problems.push(`${field} has "${text}", which is not a CIDR`);
    }
  }
  const ranges = [...found.values()];
  const sourceRanges = ranges.filter((cidr) => cidr.address.family === family);
  if (loadBalancerVips.length > 0 && ranges.length === 0 && unreadable > 0) {
    // An empty list would mean "everybody", the opposite of what was asked for.
    problems.push(`${field} has no usable entry; the load-balancer addresses are not served`);
    return { loadBalancerVips: [], sourceRanges: [] };
  }
  if (loadBalancerVips.length > 0 && ranges.length > 0 && sourceRanges.length === 0) {
    const vips = loadBalancerVips.map(formatIp).join(', ');
    problems.push(`${field} has no ${family} entry, so everybody may use ${vips}; list ${family} ranges too`);
  }
  const everybody = sourceRanges.some((cidr) => cidr.prefixLength === 0);
  return { loadBalancerVips, sourceRanges: everybody ? [] : sourceRanges };
}

function affinityOf({ spec }: Service, problems: string[]): number {
  if (spec.sessionAffinity !== 'ClientIP') return 0;
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS;
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_AFFINITY_SECONDS) return seconds;
  problems.push(
    `spec.sessionAffinityConfig.clientIP.timeoutSeconds is "${seconds}", which is not within 1 and ${MAX_AFFINITY_SECONDS}; ${DEFAULT_AFFINITY_SECONDS} is used`,
  );
  return DEFAULT_AFFINITY_SECONDS;
}

function healthCheckNodePortOf({ spec }: Service, problems: string[]): number {
  if (spec.type !== 'LoadBalancer' || spec.externalTrafficPolicy !== 'Local') return 0;
  const port = spec.healthCheckNodePort ?? 0;
  if (isPortNumber(port)) return port;
  problems.push(`spec.healthCheckNodePort is "${port}"; a load balancer with policy Local needs one to find its nodes`);
  return 0;
}

/** Whether there is such a scheduler only the kernel knows; here it only has to be a word with words of flags behind it. */
function ipvsSchedulerOf({ metadata }: Service, problems: string[]): string | undefined {
  const text = metadata.annotations?.[IPVS_SCHEDULER_ANNOTATION]?.trim() ?? '';
  if (text === '') return undefined;
  if (/^[a-z0-9]{1,15}(,[a-z-]+)*$/.test(text)) return text;
  problems.push(`${IPVS_SCHEDULER_ANNOTATION} is "${text}", which is no scheduler; the node's is used`);
  return undefined;
}

/** The addresses of `family`, each once; blank strings are passed over, unreadable ones reported. */
function addressesOf(texts: readonly string[], family: IpFamily, field: string, problems: string[]): IpAddress[] {
  const addresses = new Map<string, IpAddress>();
  for (const text of texts) {
    if (text.trim() === '') continue;
    const ip = tryParseIp(text);
    if (!ip) problems.push(`${field} has "${text}", which is not an IP address`);
    else if (ip.family === family) addresses.set(formatIp(ip), ip);
  }
  return [...addresses.values()];
}

function isPortNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
}

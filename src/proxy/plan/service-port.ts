import {
  type Cidr,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  tryParseCidr,
  tryParseIp,
} from '../../core/index.ts';
import { objectName, type Protocol, type Service, type ServicePortSpec } from '../../kube/index.ts';
import type { AddressRules } from './bounds/address-rules.ts';
import { Findings, type Restriction } from './bounds/findings.ts';
import { LIMITS } from './bounds/limits.ts';
import type { ServicePortPlan } from './service-plan.ts';

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
  | 'hint'
  | 'internalPolicy'
  | 'externalPolicy'
> & {
  /** Name of the port, possibly empty: together with the protocol it finds the endpoints. */
  readonly portName: string;
};

/** The ports of a Service in one family, and what is wrong with it. */
export interface ServicePorts {
  readonly ports: readonly ServicePort[];
  /** What could not be used, in words that name the field; the rest of the Service is served all the same. */
  readonly problems: readonly string[];
  readonly restrictions: ReadonlySet<Restriction>;
  /** Load-balancer VIPs that are the Service's but not served, because nobody can tell who may use them. */
  readonly withheldVips: readonly IpAddress[];
}

/** What Services may ask for. */
export interface Allowed {
  /** Whether external IPs are served at all (feature gate AllowServiceExternalIPs). @default true */
  readonly externalIps?: boolean;
  /** Which addresses are nobody's to ask for. @default none */
  readonly addressRules?: AddressRules | undefined;
  /** What the mode in use reads of a Service for itself. @default nothing */
  readonly hint?: ServiceHint | undefined;
}

/** An annotation of Services that means something in one mode alone. */
export interface ServiceHint {
  readonly annotation: string;
  /** Why a value cannot be used and what happens instead, to follow the value in a sentence; undefined: it can be used. */
  readonly whyNot: (value: string) => string | undefined;
}

/** What the API server fills in for `sessionAffinity: ClientIP` without a timeout, and the largest it accepts. */
const DEFAULT_AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;

const PROTOCOLS: readonly string[] = ['TCP', 'UDP', 'SCTP'] satisfies Protocol[];

/**
 * The ports of a Service in one family; none when the Service has no ClusterIP of the family (then its other addresses
 * of the family are ignored too, as kube-proxy does), is headless, or only a DNS alias. Never throws for bad values.
 *
 * An address that is both external IP and load-balancer VIP counts as VIP, so that the source ranges hold for it.
 *
 * @param allowed external IPs let anybody who may create Services take over traffic to any address (CVE-2020-8554)
 */
export function servicePortsOf(service: Service, family: IpFamily, allowed: Allowed = {}): ServicePorts {
  const findings = new Findings();
  const clusterIp = clusterIpOf(service, family, findings);
  if (!clusterIp) return servicePorts([], findings);

  const refusal = allowed.addressRules?.clusterIpRefusal(clusterIp);
  if (refusal !== undefined) {
    const text = `spec.clusterIPs has ${formatIp(clusterIp)}, which ${refusal}; nothing of the Service is served`;
    findings.restrict('refused', text);
    return servicePorts([], findings);
  }

  const { spec } = service;
  const serviceName = objectName(service);
  const portSpecs = firstOf(spec.ports ?? [], LIMITS.ports, 'spec.ports', findings);
  const addresses = externalAddressesOf(service, clusterIp, portSpecs.length, allowed, findings);
  const { externalIps, loadBalancerVips, sourceRanges } = addresses;
  const affinitySeconds = affinityOf(service, findings);
  const healthCheckNodePort = healthCheckNodePortOf(service, findings);
  const hint = allowed.hint && readHint(service, allowed.hint, findings);

  const ports = new Map<string, ServicePort>();
  for (const [index, portSpec] of portSpecs.entries()) {
    const port = readPort(portSpec, `spec.ports[${index}]`, findings);
    if (!port) continue;
    const { portName, protocol } = port;
    const name = portName === '' ? serviceName : `${serviceName}:${portName}`;
    const key = `${serviceName}:${portName}/${protocol}`;
    if (ports.has(key)) {
      findings.push(`spec.ports[${index}] has the name and protocol of an earlier port and is ignored`);
      continue;
    }
    const asked: ServicePort = {
      key,
      serviceName,
      name,
      portName,
      protocol,
      clusterIp,
      port: port.port,
      nodePort: port.nodePort,
      externalIps,
      loadBalancerVips,
      sourceRanges,
      affinitySeconds,
      healthCheckNodePort,
      internalPolicy: spec.internalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
      externalPolicy: spec.externalTrafficPolicy === 'Local' ? 'Local' : 'Cluster',
    };
    ports.set(key, withPolicyInUse(hint === undefined ? asked : { ...asked, hint }));
  }
  return servicePorts([...ports.values()], findings, addresses.withheldVips);
}

/** A policy for external traffic says nothing on a port that has no external destination. */
export function withPolicyInUse(port: ServicePort): ServicePort {
  if (port.externalPolicy === 'Cluster' || isExternallyAccessible(port)) return port;
  return { ...port, externalPolicy: 'Cluster' };
}

function servicePorts(
  ports: readonly ServicePort[],
  { problems, restrictions }: Findings,
  withheldVips: readonly IpAddress[] = [],
): ServicePorts {
  return { ports, problems, restrictions, withheldVips };
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
function clusterIpOf(service: Service, family: IpFamily, findings: Findings): IpAddress | undefined {
  const { spec } = service;
  const primary = spec.clusterIP ?? spec.clusterIPs?.[0] ?? '';
  if (primary === '' || primary === 'None' || spec.type === 'ExternalName') return undefined;
  if (spec.ipFamilies?.length && !spec.ipFamilies.includes(family)) return undefined;
  const { clusterIPs = [] } = spec;
  const isAll = clusterIPs.length === 1 && clusterIPs[0] === primary;
  const texts = isAll ? clusterIPs : [...new Set([primary, ...clusterIPs])];
  return addressesOf(texts, family, 'spec.clusterIPs', findings)[0];
}

function readPort(
  spec: ServicePortSpec,
  field: string,
  findings: Findings,
): Pick<ServicePort, 'portName' | 'protocol' | 'port' | 'nodePort'> | undefined {
  const protocol = spec.protocol ?? 'TCP';
  if (!PROTOCOLS.includes(protocol)) {
    findings.push(`${field}.protocol is "${protocol}", which is none of ${PROTOCOLS.join(', ')}; the port is ignored`);
    return undefined;
  }
  if (!isPortNumber(spec.port)) {
    findings.push(`${field}.port is "${spec.port}", which is not a port number; the port is ignored`);
    return undefined;
  }
  let nodePort = spec.nodePort ?? 0;
  if (nodePort !== 0 && !isPortNumber(nodePort)) {
    findings.push(`${field}.nodePort is "${nodePort}", which is not a port number; no NodePort is opened`);
    nodePort = 0;
  }
  return { portName: spec.name ?? '', protocol, port: spec.port, nodePort };
}

type ExternalAddresses = Pick<ServicePort, 'externalIps' | 'loadBalancerVips' | 'sourceRanges'> &
  Pick<ServicePorts, 'withheldVips'>;

/** Everything outside the cluster that leads to a Service, as far as it is allowed. */
function externalAddressesOf(
  service: Service,
  clusterIp: IpAddress,
  portCount: number,
  { externalIps: allowExternalIps = true, addressRules }: Allowed,
  findings: Findings,
): ExternalAddresses {
  const { family } = clusterIp;
  const allowed = (
    texts: readonly string[],
    kind: 'externalIp' | 'loadBalancerVip',
    field: string,
    others: readonly IpAddress[],
  ): IpAddress[] => {
    if (texts.length === 0) return [];
    const elsewhere = new Set(others.map(formatIp));
    const first = firstOf(texts, LIMITS.addresses, field, findings);
    return addressesOf(first, family, field, findings).filter((ip) => {
      if (elsewhere.has(formatIp(ip))) return false;
      const refusal = addressRules?.refusal(ip, kind);
      if (refusal !== undefined) findings.restrict('refused', `${field} has ${formatIp(ip)}, which ${refusal}`);
      return refusal === undefined;
    });
  };

  const vips = allowed(vipTexts(service), 'loadBalancerVip', 'status.loadBalancer.ingress', [clusterIp]);
  const externalTexts = allowExternalIps ? (service.spec.externalIPs ?? []) : [];
  const externalIps = allowed(externalTexts, 'externalIp', 'spec.externalIPs', [clusterIp, ...vips]);

  const most = Math.floor(LIMITS.destinations / Math.max(1, portCount)) - 1;
  if (vips.length + externalIps.length > most) {
    const text = `${portCount} ports at ${vips.length + externalIps.length} external addresses are too many; of these, the first ${most} are served`;
    findings.restrict('limit', text);
    vips.length = Math.min(vips.length, most);
    externalIps.length = Math.min(externalIps.length, most - vips.length);
  }
  return { externalIps, ...restrictedVips(service, family, vips, portCount, findings) };
}

/**
 * The virtual IPs a load balancer delivers to this node. The Service's type is not asked, as in kube-proxy; entries with
 * `ipMode: Proxy` are not for the node to handle.
 */
function vipTexts({ status }: Service): string[] {
  const texts: string[] = [];
  for (const entry of status?.loadBalancer?.ingress ?? []) {
    if (entry.ip && (entry.ipMode ?? 'VIP') === 'VIP') texts.push(entry.ip);
  }
  return texts;
}

/** Who may use the load-balancer VIPs. */
function restrictedVips(
  { spec }: Service,
  family: IpFamily,
  vips: readonly IpAddress[],
  portCount: number,
  findings: Findings,
): Pick<ExternalAddresses, 'loadBalancerVips' | 'sourceRanges' | 'withheldVips'> {
  if (!spec.loadBalancerSourceRanges?.length) return { loadBalancerVips: vips, sourceRanges: [], withheldVips: [] };
  const field = 'spec.loadBalancerSourceRanges';
  const found = new Map<string, Cidr>();
  let unreadable = 0;
  for (const text of firstOf(spec.loadBalancerSourceRanges, LIMITS.sourceRanges, field, findings)) {
    const cidr = tryParseCidr(text.trim());
    if (cidr) found.set(formatCidr(cidr), cidr);
    else {
      unreadable++;
      findings.push(`${field} has "${text}", which is not a CIDR`);
    }
  }
  const ranges = [...found.values()];
  const sourceRanges = ranges.filter((cidr) => cidr.address.family === family);
  const untold = spec.loadBalancerSourceRanges.length > LIMITS.sourceRanges && sourceRanges.length === 0;
  if (vips.length > 0 && (untold || (ranges.length === 0 && unreadable > 0))) {
    // An empty list would mean "everybody", the opposite of what was asked for.
    findings.push(`${field} has no usable entry; the load-balancer addresses are not served`);
    return { loadBalancerVips: [], sourceRanges: [], withheldVips: vips };
  }
  if (vips.length > 0 && ranges.length > 0 && sourceRanges.length === 0) {
    const texts = vips.map(formatIp).join(', ');
    findings.push(`${field} has no ${family} entry, so everybody may use ${texts}; list ${family} ranges too`);
  }
  const everybody = sourceRanges.some((cidr) => cidr.prefixLength === 0);
  if (everybody) return { loadBalancerVips: vips, sourceRanges: [], withheldVips: [] };
  // Never none: LIMITS.destinations bounds what is divided by.
  const most = Math.floor(LIMITS.allowedSources / Math.max(1, vips.length * portCount));
  return { loadBalancerVips: vips, sourceRanges: firstOf(sourceRanges, most, field, findings), withheldVips: [] };
}

/** As much of a list as a Service may have, in the order its author gave it. */
function firstOf<T>(list: readonly T[], most: number, field: string, findings: Findings): readonly T[] {
  if (list.length <= most) return list;
  findings.restrict('limit', `${field} has ${list.length} entries, of which the first ${most} are used`);
  return list.slice(0, most);
}

function affinityOf({ spec }: Service, findings: Findings): number {
  if (spec.sessionAffinity !== 'ClientIP') return 0;
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? DEFAULT_AFFINITY_SECONDS;
  if (Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_AFFINITY_SECONDS) return seconds;
  findings.push(
    `spec.sessionAffinityConfig.clientIP.timeoutSeconds is "${seconds}", which is not within 1 and ${MAX_AFFINITY_SECONDS}; ${DEFAULT_AFFINITY_SECONDS} is used`,
  );
  return DEFAULT_AFFINITY_SECONDS;
}

function healthCheckNodePortOf({ spec }: Service, findings: Findings): number {
  if (spec.type !== 'LoadBalancer' || spec.externalTrafficPolicy !== 'Local') return 0;
  const port = spec.healthCheckNodePort ?? 0;
  if (isPortNumber(port)) return port;
  findings.push(`spec.healthCheckNodePort is "${port}"; a load balancer with policy Local needs one to find its nodes`);
  return 0;
}

/** A blank annotation says nothing. */
function readHint({ metadata }: Service, hint: ServiceHint, findings: Findings): string | undefined {
  const text = metadata.annotations?.[hint.annotation]?.trim() ?? '';
  if (text === '') return undefined;
  const whyNot = hint.whyNot(text);
  if (whyNot === undefined) return text;
  findings.push(`${hint.annotation} is "${text}", ${whyNot}`);
  return undefined;
}

/** The addresses of `family`, each once; blank strings are passed over, unreadable ones reported. */
function addressesOf(texts: readonly string[], family: IpFamily, field: string, findings: Findings): IpAddress[] {
  const addresses = new Map<string, IpAddress>();
  for (const text of texts) {
    if (text.trim() === '') continue;
    const ip = tryParseIp(text);
    if (!ip) findings.push(`${field} has "${text}", which is not an IP address`);
    else if (ip.family === family) addresses.set(formatIp(ip), ip);
  }
  return [...addresses.values()];
}

function isPortNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
}

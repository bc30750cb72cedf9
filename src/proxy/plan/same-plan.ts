import { cidrEquals, type IpAddress, ipEquals } from '../../core/index.ts';
import type { Endpoint } from './endpoint.ts';
import type { NodePlan, ServicePortPlan } from './service-plan.ts';

// Equality of plans as dataplanes see them: what is equal here needs no kernel change.

type Compare<T> = (a: T, b: T) => boolean;

const identical = (a: unknown, b: unknown): boolean => a === b;

/** Hints are left out: they have done their work in the selection. */
const sameEndpoint: Compare<Endpoint> = (a, b) =>
  a === b ||
  (a.key === b.key &&
    a.isLocal === b.isLocal &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating);

/** One comparison for each field, so that a new field cannot be forgotten. */
const PORT_FIELDS: { readonly [Field in keyof ServicePortPlan]-?: Compare<ServicePortPlan[Field]> } = {
  key: identical,
  serviceName: identical,
  name: identical,
  protocol: identical,
  clusterIp: ipEquals,
  port: identical,
  nodePort: identical,
  externalIps: listOf(ipEquals),
  loadBalancerVips: listOf(ipEquals),
  sourceRanges: listOf(cidrEquals),
  affinitySeconds: identical,
  healthCheckNodePort: identical,
  hint: identical,
  internalPolicy: identical,
  externalPolicy: identical,
  clusterEndpoints: listOf(sameEndpoint),
  localEndpoints: listOf(sameEndpoint),
  servingEndpoints: (a = [], b = []) => listOf(sameEndpoint)(a, b),
  hasAnyEndpoints: identical,
  internalVerdict: identical,
  externalVerdict: identical,
};

const NODE_FIELDS: { readonly [Field in keyof NodePlan]-?: Compare<NodePlan[Field]> } = {
  localDetector: (a, b) => {
    if (a.kind === 'cidr' && b.kind === 'cidr') return cidrEquals(a.cidr, b.cidr);
    if (a.kind === 'bridge' && b.kind === 'bridge') return a.interfaceName === b.interfaceName;
    if (a.kind === 'prefix' && b.kind === 'prefix') return a.interfacePrefix === b.interfacePrefix;
    return a.kind === 'none' && b.kind === 'none';
  },
  masqueradeMark: identical,
  masqueradeAll: identical,
  nodePortAddresses: (a, b) => a === b || (a !== 'all' && b !== 'all' && listOf<IpAddress>(ipEquals)(a, b)),
  loopbackNodePorts: (a, b) => (a ?? false) === (b ?? false),
  nodeIp: (a, b) => a === b || (a !== undefined && b !== undefined && ipEquals(a, b)),
  podCidrs: (a = [], b = []) => listOf(cidrEquals)(a, b),
  serviceCidrs: (a = [], b = []) => listOf(cidrEquals)(a, b),
};

/** Whether two plans of a Service port ask the same of the kernel. */
export function samePortPlan(a: ServicePortPlan, b: ServicePortPlan): boolean {
  return a === b || sameFields(PORT_FIELDS, a, b);
}

/** Whether two node plans ask the same of the kernel. */
export function sameNodePlan(a: NodePlan, b: NodePlan): boolean {
  return a === b || sameFields(NODE_FIELDS, a, b);
}

function sameFields<T extends object>(
  fields: { readonly [Field in keyof T]-?: Compare<T[Field]> },
  a: T,
  b: T,
): boolean {
  for (const field in fields) {
    if (!fields[field](a[field], b[field])) return false;
  }
  return true;
}

function listOf<T>(same: Compare<T>): Compare<readonly T[]> {
  return (a, b) => a.length === b.length && a.every((item, index) => same(item, b[index]!));
}

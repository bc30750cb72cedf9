import {
  cidrContains,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  ipEquals,
  protocolWord,
  type Steps,
  tryParseIp,
} from '../../core/index.ts';
import { type EndpointSlice, type Node, nodeIpsOf, podCidrTexts, podRangesOf } from '../../kube/index.ts';
import {
  type ExplainedPort,
  isInUse,
  type NodePlan,
  type ProxyMode,
  podCidrsOf,
  type ServicePortPlan,
  type ServiceStore,
} from '../../proxy/index.ts';
import { nearMisses, type Question } from '../question/index.ts';
import { findAddress, findNodePort, proxiedService, servicesWithEndpoint } from './find-address.ts';
import { findPod } from './find-pod.ts';
import { whyHintsAreIgnored } from './hints.ts';
import {
  type EndpointAddress,
  KNOWLEDGE_SCHEMA,
  type Knowledge,
  type KnownDestination,
  type KnownEndpoint,
  type KnownFamily,
  type KnownNode,
  type KnownPort,
  type KnownService,
} from './knowledge.ts';

/** One family that is planned, and how its rules stand. */
export interface TellingFamily {
  readonly family: IpFamily;
  readonly node: NodePlan;
  readonly ports: ReadonlyMap<string, ServicePortPlan>;
  explain(serviceName: string): Steps<readonly ExplainedPort[]>;
  readonly writtenSecondsAgo: number | null;
  readonly failing: KnownFamily['failing'];
  readonly drift: readonly string[];
  /** Why the kernel refuses a port, by its key. */
  readonly leftOut: ReadonlyMap<string, { readonly reason: string }>;
  /** Whether something new of a Service is on its way into the kernel. */
  isUnwritten(serviceName: string): boolean;
  /** What cannot be used of a Service. */
  problems(serviceName: string): readonly string[];
}

/** What knowledge is told from. */
export interface KnowledgeSources {
  readonly nodeName: string;
  readonly zone: string;
  readonly mode: ProxyMode;
  readonly live: boolean;
  readonly routes: boolean;
  readonly commands: Knowledge['commands'];
  readonly store: ServiceStore;
  readonly families: readonly TellingFamily[];
  readonly trackingBefore: Knowledge['trackingBefore'];
  readonly seen: Knowledge['seen'];
  /** Why a Service that exists is not served here; undefined: nothing is known of such a one. */
  notServed(name: string): string | undefined;
  changedSecondsAgo(serviceName: string): number | null;
}

/** A Service has up to 20,000 endpoints; of more than these an answer takes the address alone. */
const MOST_ENDPOINTS = 1000;
/** Of those that have an address as an endpoint's. */
const MOST_SERVICES = 3;
/** Of other nodes: they are told to find out whose a next hop is. */
const MOST_NODES = 1000;

/** Tells what is known about a question, in steps: an address is looked for among all Services. Pure but for its sources. */
export function* tellKnowledge(sources: KnowledgeSources, question: Question): Steps<Knowledge> {
  const { nodeName, zone, mode, live, routes, commands, store, families, trackingBefore, seen } = sources;
  const node = store.node(nodeName);
  return {
    schema: KNOWLEDGE_SCHEMA,
    node: {
      name: nodeName,
      zone,
      addresses: addressesOf(node),
      podCidrs: podCidrsOf(node).map(formatCidr),
    },
    mode,
    live,
    routes,
    commands,
    families: families.map(({ family, node: plan, writtenSecondsAgo, failing, drift }) => ({
      family,
      masqueradeMark: plan.masqueradeMark,
      nodePortAddresses: plan.nodePortAddresses === 'all' ? 'all' : plan.nodePortAddresses.map(formatIp),
      podTraffic: podTrafficOf(plan.localDetector),
      writtenSecondsAgo,
      failing,
      drift,
    })),
    trackingBefore,
    seen,
    others: otherNodes(sources),
    source: question.source.kind === 'pod' ? yield* findPod(store, question.source) : null,
    destination: yield* destinationOf(sources, question),
  };
}

function podTrafficOf(detector: NodePlan['localDetector']): KnownFamily['podTraffic'] {
  switch (detector.kind) {
    case 'none':
      return detector;
    case 'cidr':
      return { kind: 'cidr', cidr: formatCidr(detector.cidr) };
    case 'bridge':
      return { kind: 'interface', name: detector.interfaceName, isPrefix: false };
    case 'prefix':
      return { kind: 'interface', name: detector.interfacePrefix, isPrefix: true };
  }
}

function otherNodes({ store, nodeName }: KnowledgeSources): readonly KnownNode[] {
  const others: KnownNode[] = [];
  for (const node of store.nodes()) {
    const { name } = node.metadata;
    if (name === nodeName) continue;
    others.push({ name, addresses: addressesOf(node), podCidrs: podCidrTexts(node) });
    if (others.length === MOST_NODES) break;
  }
  return others;
}

function* destinationOf(sources: KnowledgeSources, question: Question): Steps<KnownDestination> {
  const { destination, protocol } = question;
  switch (destination.kind) {
    case 'pod':
      return yield* namedPod(sources, question, destination);
    case 'service': {
      const name = `${destination.namespace}/${destination.name}`;
      return yield* namedService(sources, name, destination.port ?? null);
    }
    case 'node-port': {
      const found = yield* findNodePort(portsOf(sources), destination.port, protocol);
      if (found === undefined) return { kind: 'no-node-port', port: destination.port };
      const service = yield* tellService(sources, found);
      return { kind: 'service', service, via: 'node-port', address: null, port: String(destination.port) };
    }
    case 'address':
      return yield* destinationAt(sources, question, destination.address, destination.port ?? null);
  }
}

/** The address of the pod that the source can reach: of its family, if it has one. */
function* namedPod(
  sources: KnowledgeSources,
  question: Question,
  wanted: Extract<Question['destination'], { readonly kind: 'pod' }>,
): Steps<KnownDestination> {
  const { name, addresses, node, near } = yield* findPod(sources.store, wanted);
  const all = addresses.flatMap((text) => tryParseIp(text) ?? []);
  const { source } = question;
  const ip = all.find(({ family }) => source.kind === 'address' && family === source.address.family) ?? all[0];
  if (!ip) return { kind: 'pod-name', name, near };
  const found = yield* destinationAt(sources, question, ip, wanted.port ?? null);
  return found.kind === 'address' ? { ...found, pod: name, node: node ?? found.node } : found;
}

function* namedService(sources: KnowledgeSources, name: string, port: string | null): Steps<KnownDestination> {
  const { store } = sources;
  const service = store.service(name);
  const why =
    service?.spec.type === 'ExternalName'
      ? 'it is of type ExternalName: a name in DNS and nothing more'
      : sources.notServed(name);
  if (why !== undefined) return { kind: 'not-served', name, why };
  if (!service) return { kind: 'no-service', name, near: yield* nearMisses(name, store.serviceNames()) };
  return { kind: 'service', service: yield* tellService(sources, name), via: 'cluster-ip', address: null, port };
}

function* destinationAt(
  sources: KnowledgeSources,
  { protocol }: Question,
  ip: IpAddress,
  port: number | null,
): Steps<KnownDestination> {
  const address = formatIp(ip);
  const { exact, otherPort, nodePort } = yield* findAddress(portsOf(sources), ip, port, protocol);
  const isOwn = addressesOf(sources.store.node(sources.nodeName)).includes(address);
  const meant = exact ?? otherPort ?? (isOwn ? nodePort : undefined);
  if (meant) {
    const service = yield* tellService(sources, meant.serviceName);
    return { kind: 'service', service, via: meant.via, address, port: port === null ? null : String(port) };
  }
  const endpointOf = yield* servicesWithEndpoint(portsOf(sources), ip, MOST_SERVICES);
  return {
    kind: 'address',
    pod: null,
    address,
    port,
    endpointOf,
    node: nodeWith(sources, ip),
    nodePortOf: nodePort?.serviceName ?? null,
    proxiedOf: (yield* proxiedService(sources.store, ip)) ?? null,
  };
}

function portsOf({ families }: KnowledgeSources): ReadonlyMap<string, ServicePortPlan>[] {
  return families.map(({ ports }) => ports);
}

function nodeWith({ store }: KnowledgeSources, ip: IpAddress): string | null {
  for (const node of store.nodes()) {
    const { name } = node.metadata;
    if (nodeIpsOf(node).some((one) => ipEquals(one, ip))) return name;
    if (podRangesOf(node, ip.family).some((range) => cidrContains(range, ip))) return name;
  }
  return null;
}

function* tellService(sources: KnowledgeSources, name: string): Steps<KnownService> {
  const { store, families } = sources;
  const slices = store.slices(name);
  const service = store.service(name);
  const ports: KnownPort[] = [];
  const problems = new Set<string>();
  const names = nodesOfEndpoints(slices);
  for (const family of families) {
    for (const text of family.problems(name)) problems.add(text);
    for (const explained of yield* family.explain(name)) {
      ports.push(tellPort(family, explained, names));
      yield;
    }
  }
  const spec = service?.spec;
  return {
    name,
    ipFamilies: spec?.ipFamilies ?? [],
    portList: (spec?.ports ?? []).map(({ name: portName, port, protocol = 'TCP' }) =>
      [portName, `${port}/${protocolWord(protocol)}`].filter(Boolean).join(' '),
    ),
    ports,
    problems: [...problems],
    slices: slices.length,
    sliceEndpoints: slices.reduce((sum, { endpoints = [] }) => sum + endpoints.length, 0),
    sliceFamilies: [...new Set(slices.flatMap(({ addressType, endpoints = [] }) => endpoints.map(() => addressType)))],
    changedSecondsAgo: sources.changedSecondsAgo(name),
    unwritten: families.some((family) => family.isUnwritten(name)),
    hintsIgnored: whyHintsAreIgnored(slices, sources),
  };
}

function tellPort(
  { family, leftOut }: TellingFamily,
  { port, endpoints }: ExplainedPort,
  nodes: ReadonlyMap<string, string>,
): KnownPort {
  const told = endpoints.map(({ endpoint, cluster, local }): KnownEndpoint => {
    const ip = formatIp(endpoint.ip);
    const { port: number, isLocal: here, ready, terminating } = endpoint;
    const [usedByCluster, usedByLocal] = [isInUse(cluster), isInUse(local)];
    const node = nodes.get(ip) ?? null;
    return { ip, port: number, node, here, ready, terminating, cluster, local, usedByCluster, usedByLocal };
  });
  told.sort((a, b) => rankOf(a) - rankOf(b));
  const further = told.slice(MOST_ENDPOINTS);
  return {
    family,
    key: port.key,
    name: port.name,
    protocol: port.protocol,
    clusterIp: formatIp(port.clusterIp),
    port: port.port,
    nodePort: port.nodePort,
    externalIps: port.externalIps.map(formatIp),
    loadBalancerVips: port.loadBalancerVips.map(formatIp),
    sourceRanges: port.sourceRanges.map(formatCidr),
    affinitySeconds: port.affinitySeconds,
    internalPolicy: port.internalPolicy,
    externalPolicy: port.externalPolicy,
    internalVerdict: port.internalVerdict,
    externalVerdict: port.externalVerdict,
    leftOut: leftOut.get(port.key)?.reason ?? null,
    endpoints: told.slice(0, MOST_ENDPOINTS),
    endpointsTotal: told.length,
    further: {
      cluster: further.filter(({ usedByCluster }) => usedByCluster).map(addressOf),
      local: further.filter(({ usedByLocal }) => usedByLocal).map(addressOf),
    },
  };
}

/** The lower, the more it matters here. */
function rankOf({ usedByLocal, usedByCluster, here }: KnownEndpoint): number {
  if (usedByLocal) return 0;
  if (usedByCluster) return here ? 1 : 2;
  return 3;
}

const addressOf = ({ ip, port }: KnownEndpoint): EndpointAddress => ({ ip, port });

function nodesOfEndpoints(slices: readonly EndpointSlice[]): ReadonlyMap<string, string> {
  const nodes = new Map<string, string>();
  for (const { endpoints = [] } of slices) {
    for (const { addresses = [], nodeName } of endpoints) {
      if (addresses[0] !== undefined && nodeName !== undefined) nodes.set(addresses[0], nodeName);
    }
  }
  return nodes;
}

function addressesOf(node: Node | undefined): readonly string[] {
  return nodeIpsOf(node).map(formatIp);
}

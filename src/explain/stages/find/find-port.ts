import {
  formatIp,
  type IpAddress,
  type IpFamily,
  type IpProtocol,
  parseIp,
  protocolWord,
  withPort,
} from '../../../core/index.ts';
import { type Knowledge, type KnownPort, type KnownService, knownFamily } from '../../knowledge/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Question } from '../../question/index.ts';
import type { Target } from '../asked.ts';
import { asking, editing, showingService, sourceWord } from '../commands.ts';
import type { Finding, Report } from '../report.ts';
import { tellNotReady } from '../serving-agent.ts';
import { twinOf } from './twin.ts';

type ServiceDestination = Extract<Knowledge['destination'], { readonly kind: 'service' }>;

/** Finds which port of a Service is asked for, in which family and at which address; undefined: none, and the report says why. */
export function findPort(
  question: Question,
  knowledge: Knowledge,
  destination: ServiceDestination,
  node: NodeView | undefined,
  report: Report,
): Target | undefined {
  if (knowledge.families.length === 0) {
    tellNotReady(report);
    return undefined;
  }
  const family = familyFor(question, knowledge, destination, node);
  const { service, via, port: wanted } = destination;
  if (typeof family !== 'string') return withoutNodePort(question, knowledge, destination, family, node, report);
  const fits = service.ports.filter((port) => port.family === family && hasPort(port, wanted, via === 'node-port'));
  const { protocol } = question;
  const port = fits.find((one) => one.protocol === (protocol ?? 'TCP')) ?? (protocol ? undefined : fits[0]);
  if (!port) return withoutPort(question, knowledge, destination, family, report);
  const ip = addressFor(port, knowledge, destination, node);
  if ('text' in ip) return withoutNodePort(question, knowledge, destination, ip, node, report);
  const shown = via === 'cluster-ip' ? '' : `, by its ${inWords(via)}`;
  report.stage('service', 'ok', describe(service, port, shown));
  const number = via === 'node-port' ? port.nodePort : port.port;
  return { family, protocol: port.protocol as IpProtocol, ip, port: number, service: { service, port, via } };
}

/** The family of the address that was asked for, or else of the client, or else the Service's first; or why it has no such port. */
function familyFor(
  { source }: Question,
  knowledge: Knowledge,
  { service, address }: ServiceDestination,
  node: NodeView | undefined,
): IpFamily | Finding {
  const asked = address === null ? familyOf(source, knowledge) : parseIp(address).family;
  const has = new Set(service.ports.map(({ family }) => family));
  const isLacking = address === null && asked !== undefined && !has.has(asked);
  // A pod has those of all its addresses.
  const other = isLacking && node ? [...has].find((one) => twinOf(source, knowledge, one, node)) : undefined;
  const family = other ?? asked ?? service.ipFamilies.find((one) => has.has(one)) ?? [...has][0];
  if (family !== undefined && has.has(family)) return family;
  const isServed = knowledge.families.some((served) => served.family === asked);
  if (has.size > 0 || (asked && !isServed)) {
    const text = isServed
      ? `${service.name} is ${[...has].join(' and ')} only, asked was ${asked}`
      : `${asked} is not served on this node`;
    const remedy = isServed ? editing(service.name, 'spec.ipFamilyPolicy: PreferDualStack') : knowledge.commands.status;
    return { code: 'family', text, remedy: [remedy] };
  }
  const [problem] = service.problems;
  const text = `no port of ${service.name} is served here${problem ? `: ${problem}` : ''}`;
  return { code: 'not-for-us', text, remedy: [showingService(service.name)] };
}

/**
 * What is not served as asked. A number that is no NodePort at an address of this node is for whoever listens there (a process, or a
 * pod by a `hostPort`): the rules tell.
 */
function withoutNodePort(
  { protocol, source }: Question,
  knowledge: Knowledge,
  { service, via, address, port: wanted }: ServiceDestination,
  why: Finding,
  node: NodeView | undefined,
  report: Report,
): Target | undefined {
  const ip = address === null ? ownAddress(knowledge, familyOf(source, knowledge), node) : parseIp(address);
  if (via !== 'node-port' || !node || !ip) {
    report.fail('service', why);
    return undefined;
  }
  const port = Number(wanted);
  const known = service.ports.filter(({ nodePort }) => nodePort === port).map((one) => one.protocol as IpProtocol);
  report.stage('service', 'ok', `${why.text}; a process may listen there, or somebody map it`);
  const meant = protocol ?? (known.includes('TCP') ? 'TCP' : known[0]!);
  return { family: ip.family, protocol: meant, ip, port, service: undefined, unheard: why };
}

/** The Service has no such port. At an address that it shares with others (external IP, VIP) somebody else may. */
function withoutPort(
  { protocol = 'TCP', source }: Question,
  knowledge: Knowledge,
  { service, via, address, port: wanted }: ServiceDestination,
  family: IpFamily,
  report: Report,
): Target | undefined {
  const number = `${wanted ?? ''}${wanted === null ? '' : '/'}${protocolWord(protocol)}`;
  const isShared = via !== 'cluster-ip' && via !== 'node-port';
  if (isShared && address !== null && wanted !== null) {
    const text = `${service.name} has no port ${number} at its ${inWords(via)}`;
    report.stage('service', 'ok', `${text}: that is for whoever has the address`);
    return { family, protocol, ip: parseIp(address), port: Number(wanted), service: undefined };
  }
  const text = `${service.name} has no port ${number}; it has ${service.portList.join(', ')}`;
  const other = service.ports.find((port) => port.family === family);
  const remedy = other
    ? asking(`svc/${service.name}:${other.port}`, { from: sourceWord(source), protocol: other.protocol }, knowledge)
    : showingService(service.name);
  report.fail('service', { code: 'no-such-port', text, remedy: [remedy] });
  return undefined;
}

/** The address asked for, or the one that the way in has; or why the port is not served there. */
function addressFor(
  port: KnownPort,
  knowledge: Knowledge,
  { via, address }: ServiceDestination,
  node: NodeView | undefined,
): IpAddress | Finding {
  const { family } = port;
  if (address === null && via !== 'node-port') return parseIp(port.clusterIp);
  const ip = address === null ? ownAddress(knowledge, family, node) : parseIp(address);
  if (!ip) {
    const text = `this node has no ${family} address`;
    return { code: 'family', text, remedy: [`kubectl get node ${knowledge.node.name} -o yaml   # status.addresses`] };
  }
  if (via !== 'node-port' || isNodePortAddress(knowledge, family, formatIp(ip))) return ip;
  const text = `NodePorts do not answer at ${formatIp(ip)}: --nodeport-addresses leaves it out`;
  return { code: 'nodeport-address', text, remedy: whereServed(knowledge, port) };
}

/** Asks for a NodePort where it is served, or for why it is served nowhere. */
export function whereServed(
  knowledge: Knowledge,
  { family, nodePort, protocol }: Pick<KnownPort, 'family' | 'nodePort' | 'protocol'>,
): readonly string[] {
  const served = knownFamily(knowledge, family)?.nodePortAddresses ?? 'all';
  const own = served === 'all' ? ownAddress(knowledge, family, undefined) : undefined;
  const [address = own && formatIp(own)] = served === 'all' ? [] : served;
  if (address === undefined) return ['ip address   # --nodeport-addresses names none of them'];
  return [asking(withPort(address, nodePort), { protocol }, knowledge)];
}

/**
 * An address of the node, as its Node object has it: one that a link here has, before others by which it is known
 * elsewhere (ExternalIP).
 */
export function ownAddress(
  knowledge: Knowledge,
  family: IpFamily | undefined,
  node: NodeView | undefined,
): IpAddress | undefined {
  const all = knowledge.node.addresses.map((one) => parseIp(one));
  const fits = all.filter((one) => family === undefined || one.family === family);
  return fits.find((one) => node?.isOwnAddress(formatIp(one))) ?? fits[0];
}

/** Of the client; undefined: it may have either. */
export function familyOf(source: Question['source'], knowledge: Knowledge): IpFamily | undefined {
  if (source.kind === 'address') return source.address.family;
  const [first, ...others] = (knowledge.source?.addresses ?? []).map((text) => parseIp(text).family);
  return others.every((family) => family === first) ? first : undefined;
}

function hasPort(port: KnownPort, wanted: string | null, isNodePort: boolean): boolean {
  if (wanted === null) return true;
  if (isNodePort) return port.nodePort === Number(wanted);
  return port.port === Number(wanted) || port.name.endsWith(`:${wanted}`);
}

function isNodePortAddress(knowledge: Knowledge, family: IpFamily, address: string): boolean {
  const addresses = knownFamily(knowledge, family)?.nodePortAddresses ?? 'all';
  return addresses === 'all' ? !/^(127\.|::1$)/.test(address) : addresses.includes(address);
}

function describe(service: KnownService, port: KnownPort, address: string): string {
  const targets = new Set(port.endpoints.map((endpoint) => endpoint.port));
  const to = targets.size === 0 ? 'no target' : `target port ${[...targets].slice(0, 3).join(', ')}`;
  const affinity = port.affinitySeconds > 0 ? `, affinity ${port.affinitySeconds} s` : '';
  return `${service.name} port ${port.port}/${protocolWord(port.protocol)} -> ${to}${address}${affinity}`;
}

function inWords(via: ServiceDestination['via']): string {
  return via.replaceAll('-', ' ');
}

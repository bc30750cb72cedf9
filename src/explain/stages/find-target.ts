import { formatIp, type IpAddress, type IpFamily, type IpProtocol, parseIp } from '../../core/index.ts';
import type { Knowledge, KnownPort, KnownService } from '../knowledge/index.ts';
import type { NodeView } from '../node/index.ts';
import type { Question } from '../question/index.ts';
import type { Target } from './asked.ts';
import type { Report } from './report.ts';
import { tellNotReady } from './serving-agent.ts';

/** Finds what is connected to; undefined: there is no such thing, and the report says why. */
export function findTarget(
  question: Question,
  knowledge: Knowledge,
  node: NodeView | undefined,
  report: Report,
): Target | undefined {
  const { destination } = knowledge;
  const protocol = question.protocol ?? 'TCP';
  const isReady = knowledge.families.length > 0;
  const told = (to: string) => {
    report.question = { ...report.question, to, protocol: protocol.toLowerCase() };
  };
  switch (destination.kind) {
    case 'no-node-port': {
      told(nameOf(destination));
      const target = node && atNode(question, knowledge, destination.port, node);
      if (target)
        report.stage('service', 'ok', 'no Service has this NodePort; a process may listen there, or somebody map it');
      else refuse(destination, report);
      return target;
    }
    case 'pod-name':
    case 'no-service':
    case 'not-served':
      told(nameOf(destination));
      if (isReady) refuse(destination, report);
      else tellNotReady(report);
      return undefined;
    case 'address': {
      const { pod, address, port, endpointOf, node } = destination;
      const at = port === null ? address : `${address}:${port}/${protocol.toLowerCase()}`;
      told(pod === null ? at : `pod ${pod} (${at})`);
      const whose = [node && `of node ${node}`, endpointOf[0] && `endpoint of svc ${endpointOf.join(', ')}`];
      if (port === null && !isReady) {
        tellNotReady(report);
        return undefined;
      }
      if (port === null) {
        const text = `${address} is no address of a Service${endpointOf[0] ? `, but an endpoint of ${endpointOf[0]}` : ''}; without a port nothing more can be said`;
        report.fail('service', { code: 'no-such-port', text, remedy: [`nodeplane explain ${address}:PORT`] });
        return undefined;
      }
      report.stage('service', 'ok', `no Service; ${whose.filter(Boolean).join(', ') || 'an address'}`);
      const ip = parseIp(address);
      return { family: ip.family, protocol, ip, port, service: undefined };
    }
    case 'service': {
      told(`svc ${destination.service.name}${destination.port === null ? '' : `:${destination.port}`}`);
      const target = findPort(question, knowledge, destination, node, report);
      if (target) {
        const { service, ip, port } = target;
        const shown = `${formatIp(ip)}:${port}/${target.protocol.toLowerCase()}`;
        told(service ? `svc ${service.port.name} (${shown})` : shown);
        report.question = {
          ...report.question,
          protocol: target.protocol.toLowerCase(),
          family: target.family,
        };
      }
      return target;
    }
  }
}

/** A port of the node's own address: a process listens there (the kubelet), or rules map it to a pod (`hostPort`). The rules tell. */
function atNode(
  { protocol = 'TCP', source }: Question,
  knowledge: Knowledge,
  port: number,
  node: NodeView,
): Target | undefined {
  const family = familyOf(source, knowledge);
  const ip = ownAddress(knowledge, family, node);
  return ip && { family: ip.family, protocol, ip, port, service: undefined };
}

type Refused = Extract<
  Knowledge['destination'],
  { readonly kind: 'pod-name' | 'no-service' | 'not-served' | 'no-node-port' }
>;

function nameOf(destination: Refused): string {
  if (destination.kind === 'no-node-port') return `node:${destination.port}`;
  return `${destination.kind === 'pod-name' ? 'pod' : 'svc'} ${destination.name}`;
}

/** Of a number that rules map to nobody, and at which no process of the node listens. */
export function refuseNodePort(port: number, report: Report): void {
  report.fail('service', { code: 'no-such-port', text: `no Service has the NodePort ${port}` });
}

function refuse(destination: Refused, report: Report): void {
  switch (destination.kind) {
    case 'pod-name': {
      report.cannotTell('service', unknownPod(destination));
      return;
    }
    case 'no-service': {
      const { name, near } = destination;
      const text =
        near.length === 0 ? `no Service ${name} is known here` : `no Service ${name}; did you mean ${near.join(', ')}?`;
      const remedy = near[0]
        ? [`nodeplane explain svc/${near[0]}`]
        : ['kubectl get services -A   # a headless one is not known here'];
      report.fail('service', { code: 'dns-name', text, remedy });
      return;
    }
    case 'not-served':
      report.fail('service', {
        code: 'not-for-us',
        text: `${destination.name} is not served here: ${destination.why}`,
      });
      return;
    case 'no-node-port':
      refuseNodePort(destination.port, report);
  }
}

/** Of pods nothing is known here but what EndpointSlices tell. */
export function unknownPod({ name, near }: { readonly name: string; readonly near: readonly string[] }): string {
  const [namespace, own] = name.split('/');
  const meant = near.length === 0 ? '' : `; did you mean ${near.join(', ')}?`;
  return `no Service that is served here has an endpoint of the pod ${name}${meant} Of other pods ask with the address that kubectl -n ${namespace} get pod ${own} -o wide shows`;
}

type ServiceDestination = Extract<Knowledge['destination'], { readonly kind: 'service' }>;

function findPort(
  { protocol, source }: Question,
  knowledge: Knowledge,
  { service, via, address, port: wanted }: ServiceDestination,
  node: NodeView | undefined,
  report: Report,
): Target | undefined {
  const asked = address === null ? familyOf(source, knowledge) : parseIp(address).family;
  const served = knowledge.families.map(({ family }) => family);
  const has = new Set(service.ports.map(({ family }) => family));
  const family: IpFamily | undefined = asked ?? service.ipFamilies.find((one) => has.has(one)) ?? [...has][0];
  if (served.length === 0) {
    tellNotReady(report);
    return undefined;
  }
  if (family === undefined || !has.has(family)) {
    if (has.size > 0 || (asked && !served.includes(asked))) {
      const of = [...has].join(' and ');
      const text = served.includes(asked!)
        ? `${service.name} is ${of} only, asked was ${asked}`
        : `${asked} is not served on this node`;
      report.fail('service', { code: 'family', text });
    } else {
      const [problem] = service.problems;
      const text = `no port of ${service.name} is served here${problem ? `: ${problem}` : ''}`;
      report.fail('service', { code: 'not-for-us', text });
    }
    return undefined;
  }
  const ofFamily = service.ports.filter((port) => port.family === family);
  const fits = ofFamily.filter((port) => hasPort(port, wanted, via === 'node-port'));
  const port = fits.find((one) => one.protocol === (protocol ?? 'TCP')) ?? (protocol ? undefined : fits[0]);
  if (!port && address !== null && wanted !== null && via !== 'cluster-ip' && via !== 'node-port') {
    const text = `${service.name} has no port ${wanted}/${(protocol ?? 'TCP').toLowerCase()} at its ${via.replaceAll('-', ' ')}`;
    report.stage('service', 'ok', `${text}: that is for whoever has the address`);
    return { family, protocol: protocol ?? 'TCP', ip: parseIp(address), port: Number(wanted), service: undefined };
  }
  if (!port) {
    const text = `${service.name} has no port ${wanted ?? ''}${wanted === null ? '' : '/'}${(protocol ?? 'TCP').toLowerCase()}; it has ${service.portList.join(', ')}`;
    const [other] = ofFamily;
    const remedy = other ? [`use port ${other.port}/${other.protocol.toLowerCase()}`] : undefined;
    report.fail('service', { code: 'no-such-port', text, ...(remedy && { remedy }) });
    return undefined;
  }
  const own = ownAddress(knowledge, family, node);
  const byVia = via === 'node-port' ? own : parseIp(port.clusterIp);
  const ip = address === null ? byVia : parseIp(address);
  if (!ip) {
    report.fail('service', { code: 'family', text: `this node has no ${family} address` });
    return undefined;
  }
  if (via === 'node-port' && !isNodePortAddress(knowledge, family, formatIp(ip))) {
    const text = `NodePorts do not answer at ${formatIp(ip)}: --nodeport-addresses leaves it out`;
    report.fail('service', { code: 'nodeport-address', text });
    return undefined;
  }
  const addressText = via === 'cluster-ip' ? '' : `, by its ${via.replaceAll('-', ' ')}`;
  report.stage('service', 'ok', describe(service, port, addressText));
  const number = via === 'node-port' ? port.nodePort : port.port;
  return { family, protocol: port.protocol as IpProtocol, ip, port: number, service: { service, port, via } };
}

/** An address of the node, as its Node object has it: one that a link here has, before others by which it is known elsewhere (ExternalIP). */
function ownAddress(
  knowledge: Knowledge,
  family: IpFamily | undefined,
  node: NodeView | undefined,
): IpAddress | undefined {
  const all = knowledge.node.addresses.map((one) => parseIp(one));
  const fits = all.filter((one) => family === undefined || one.family === family);
  return fits.find((one) => node?.isOwnAddress(formatIp(one))) ?? fits[0];
}

/** Undefined: the source may have either. */
function familyOf(source: Question['source'], knowledge: Knowledge): IpFamily | undefined {
  if (source.kind === 'address') return source.address.family;
  const [first, ...others] = (knowledge.source?.addresses ?? []).map((text) => parseIp(text).family);
  return others.every((family) => family === first) ? first : undefined;
}

function hasPort(port: KnownPort, wanted: string | null, isNodePort: boolean): boolean {
  if (wanted === null) return true;
  if (isNodePort) return port.nodePort === Number(wanted);
  return port.port === Number(wanted) || port.name.endsWith(`:${wanted}`);
}

function isNodePortAddress({ families }: Knowledge, family: IpFamily, address: string): boolean {
  const addresses = families.find((one) => one.family === family)?.nodePortAddresses ?? 'all';
  return addresses === 'all' ? !/^(127\.|::1$)/.test(address) : addresses.includes(address);
}

function describe(service: KnownService, port: KnownPort, address: string): string {
  const targets = new Set(port.endpoints.map((endpoint) => endpoint.port));
  const to = targets.size === 0 ? 'no target' : `target port ${[...targets].slice(0, 3).join(', ')}`;
  const affinity = port.affinitySeconds > 0 ? `, affinity ${port.affinitySeconds} s` : '';
  return `${service.name} port ${port.port}/${port.protocol.toLowerCase()} -> ${to}${address}${affinity}`;
}

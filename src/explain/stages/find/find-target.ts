import { formatIp, formatIpPort, parseIp, protocolWord, shellWord, tryParseIp, withPort } from '../../../core/index.ts';
import type { Knowledge } from '../../knowledge/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Question } from '../../question/index.ts';
import type { Target } from '../asked.ts';
import { asking, showingService, sourceWord } from '../commands.ts';
import type { Finding, Report } from '../report.ts';
import { tellNotReady } from '../serving-agent.ts';
import { familyOf, findPort, ownAddress } from './find-port.ts';

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
    report.question = { ...report.question, to, protocol: protocolWord(protocol) };
  };
  switch (destination.kind) {
    case 'no-node-port': {
      told(nameOf(destination));
      const target = node && atNode(question, knowledge, destination.port, node);
      if (target)
        report.stage('service', 'ok', 'no Service has this NodePort; a process may listen there, or somebody map it');
      else refuse(question, destination, knowledge, report);
      return target;
    }
    case 'pod-name':
    case 'no-service':
    case 'not-served':
      told(nameOf(destination));
      if (isReady) refuse(question, destination, knowledge, report);
      else tellNotReady(report);
      return undefined;
    case 'address': {
      const { pod, address, port, endpointOf, node, proxiedOf } = destination;
      const at = port === null ? address : `${address}:${port}/${protocolWord(protocol)}`;
      told(pod === null ? at : `pod ${pod} (${at})`);
      const whose = [node && `of node ${node}`, endpointOf[0] && `endpoint of svc ${endpointOf.join(', ')}`];
      if (port === null && !isReady) {
        tellNotReady(report);
        return undefined;
      }
      if (port === null) {
        const text = `${address} is no address of a Service${endpointOf[0] ? `, but an endpoint of ${endpointOf[0]}` : ''}; without a port nothing more can be said`;
        report.cannotTell('service', text);
        const written = pod === null ? writtenWithPort(address) : [`pod/${pod}:PORT`];
        for (const one of written) report.askThere(`${knowledge.commands.explain} ${shellWord(one)}`);
        return undefined;
      }
      if (proxiedOf !== null)
        whose.push(`of the load balancer of svc ${proxiedOf}, which takes connections itself (ipMode Proxy)`);
      report.stage('service', 'ok', `no Service; ${whose.filter(Boolean).join(', ') || 'an address'}`);
      const ip = parseIp(address);
      return { family: ip.family, protocol, ip, port, service: undefined };
    }
    case 'service': {
      told(`svc ${destination.service.name}${destination.port === null ? '' : `:${destination.port}`}`);
      const target = findPort(question, knowledge, destination, node, report);
      if (target) {
        const { service, ip, port } = target;
        const shown = `${formatIp(ip)}:${port}/${protocolWord(target.protocol)}`;
        told(service ? `svc ${service.port.name} (${shown})` : shown);
        report.question = {
          ...report.question,
          protocol: protocolWord(target.protocol),
          family: target.family,
        };
      }
      return target;
    }
  }
}

/** How an address is written with a port: one of IPv6 may end with what was meant for its port, without the brackets that wants. */
function writtenWithPort(address: string): string[] {
  const [, start, end] = /^(.+):(\d+)$/.exec(address) ?? [];
  const meant = tryParseIp(start ?? '');
  return [...(meant ? [formatIpPort(meant, Number(end))] : []), withPort(address, 'PORT')];
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
  return ip && { family: ip.family, protocol, ip, port, service: undefined, unheard: noNodePort(port) };
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
function noNodePort(port: number): Finding {
  return { code: 'no-such-port', text: `no Service has the NodePort ${port}`, remedy: ['kubectl get services -A'] };
}

function refuse(question: Question, destination: Refused, knowledge: Knowledge, report: Report): void {
  switch (destination.kind) {
    case 'pod-name': {
      report.cannotTell('service', unknownPod(destination));
      return;
    }
    case 'no-service': {
      const { name, near } = destination;
      const text =
        near.length === 0 ? `no Service ${name} is known here` : `no Service ${name}; did you mean ${near.join(', ')}?`;
      const { source, protocol = 'TCP' } = question;
      const { port } = question.destination;
      const meant = `svc/${near[0]}${port === undefined ? '' : `:${port}`}`;
      const remedy = near[0]
        ? [asking(meant, { from: sourceWord(source), protocol }, knowledge)]
        : ['kubectl get services -A   # a headless one is not known here'];
      report.fail('service', { code: 'dns-name', text, remedy });
      return;
    }
    case 'not-served':
      // Its name may lead to pods that listen at that very port, or its address to another proxy.
      report.cannotTellFor('service', {
        code: 'not-for-us',
        text: `${destination.name} is not served here: ${destination.why}`,
        remedy: [showingService(destination.name)],
      });
      return;
    case 'no-node-port':
      report.fail('service', noNodePort(destination.port));
  }
}

/** Of pods nothing is known here but what EndpointSlices tell. */
export function unknownPod({ name, near }: { readonly name: string; readonly near: readonly string[] }): string {
  const [namespace, own] = name.split('/');
  const meant = near.length === 0 ? '.' : `; did you mean ${near.join(', ')}?`;
  return `no Service that is served here has an endpoint of the pod ${name}${meant} Of other pods ask with the address that kubectl -n ${namespace} get pod ${own} -o wide shows`;
}

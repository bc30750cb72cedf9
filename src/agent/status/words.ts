import { durationText, withPort } from '../../core/index.ts';
import type { EndpointReason, Verdict } from '../../proxy/index.ts';
import type { EndpointReport, ForeignChange, PortReport, Question, ServiceReport } from './status.ts';

// Numbers as people read them, the same on the page and in the terminal.

/** `0.4 ms`, `12 ms`, `1.5 s` */
export function secondsText(seconds: number): string {
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  return seconds < 1 ? `${Math.round(seconds * 1000)} ms` : `${seconds.toFixed(1)} s`;
}

/** `75 MiB` */
export function byteText(bytes: number): string {
  return `${Math.round(bytes / 2 ** 20)} MiB`;
}

/** `1 endpoint`, `3 endpoints` */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Why an endpoint is used, or not. */
const REASONS: Readonly<Record<EndpointReason, string>> = {
  ready: 'ready',
  'same-node': 'hinted for this node',
  'same-zone': 'hinted for this zone',
  'terminating-fallback': 'ending, but nothing else is ready',
  'other-node': 'hinted for other nodes',
  'other-zone': 'hinted for other zones',
  'not-local': 'runs on another node',
  terminating: 'ending, and others are ready',
  'not-ready': 'not ready',
  'policy-not-used': 'the policy is not used',
};

/** Why an endpoint is used or not, under each policy that something of its port follows. */
export function whyText({ cluster, local }: Pick<EndpointReport, 'cluster' | 'local'>): string {
  if (cluster === null && local === null) return 'no address of the Service leads to it';
  if (cluster === null || local === null) {
    return local === null ? REASONS[cluster!] : `${REASONS[local]} (policy Local)`;
  }
  return cluster === local ? REASONS[cluster] : `${REASONS[cluster]}; under policy Local: ${REASONS[local]}`;
}

/** What happens to connections, by the verdict of a port. */
export const VERDICTS: Readonly<Record<Verdict, string>> = {
  forward: 'served',
  reject: 'refused: no endpoint anywhere',
  drop: 'dropped: no endpoint on this node, policy Local',
};

export interface Standing {
  readonly verdict: Question['verdict'];
  /** In words; empty when all is served. */
  readonly text: string;
}

/** How a Service fares on this node, as its worst port does. */
export function standingOf({ ports, problems }: ServiceReport): Standing {
  const leftOut = ports.find((port) => port.leftOut !== null);
  if (leftOut) return { verdict: 'problem', text: 'not programmed: the kernel refuses it' };
  if (problems.length > 0) return { verdict: 'problem', text: ports.length > 0 ? 'partly served' : 'not served' };
  const verdicts = ports.flatMap((port) => [port.internalVerdict, port.externalVerdict ?? 'forward']);
  const worst = verdicts.includes('reject') ? 'reject' : verdicts.includes('drop') ? 'drop' : undefined;
  return worst
    ? { verdict: 'none', text: `${whereText(ports, worst)}${VERDICTS[worst]}` }
    : { verdict: 'ok', text: '' };
}

/** Empty: at all addresses of a Service. */
function whereText(ports: ServiceReport['ports'], verdict: Verdict): string {
  const hasOutside = ports.some((port) => port.externalVerdict !== null);
  const isInside = ports.some((port) => port.internalVerdict === verdict);
  if (!isInside) return 'from outside ';
  return hasOutside && ports.every((port) => port.externalVerdict !== verdict) ? 'at the ClusterIP ' : '';
}

/** The sign before a line. */
export const MARKS: Readonly<Record<Question['verdict'], string>> = { ok: '✓', problem: '✗', none: '–' };

/** `4 s ago`; what began is `up`, what cannot be known is empty. */
export function ageText({ id, ageSeconds }: Pick<Question, 'id' | 'ageSeconds'>): string {
  if (ageSeconds === null) return '';
  if (id === 'agent') return `up ${durationText(ageSeconds)}`;
  return ageSeconds < 1 ? 'now' : `${durationText(ageSeconds)} ago`;
}

/** All addresses that lead to a port: `10.96.0.10:80`, `NodePort 30080`. */
export function addressTexts(port: PortReport): readonly string[] {
  const at = (ip: string) => withPort(ip, port.port);
  return [
    at(port.clusterIp),
    ...(port.nodePort === 0 ? [] : [`NodePort ${port.nodePort}`]),
    ...port.externalIps.map((ip) => `external ${at(ip)}`),
    ...port.loadBalancerVips.map((ip) => `load balancer ${at(ip)}`),
  ];
}

/** What of a port is not as usual: policies, affinity, who may use it. */
export function traitTexts(port: PortReport): readonly string[] {
  return [
    ...(port.internalPolicy === 'Local' ? ['internalTrafficPolicy Local'] : []),
    ...(port.externalPolicy === 'Local' ? ['externalTrafficPolicy Local'] : []),
    ...(port.affinitySeconds > 0 ? [`session affinity ${durationText(port.affinitySeconds)}`] : []),
    ...(port.sourceRanges.length > 0 ? [`load balancer for ${port.sourceRanges.join(', ')} only`] : []),
  ];
}

/** Milliseconds between RFC 3339 texts, as seconds. */
export function secondsBetween(from: string, to: string): number {
  return (Date.parse(to) - Date.parse(from)) / 1000;
}

/** `firewalld (pid 812)`: who changed rules. */
export function programText({ program, pid }: Pick<ForeignChange, 'program' | 'pid'>): string {
  return pid === 0 ? 'the kernel' : `${program} (pid ${pid})`;
}

import { formatIp, isLoopback } from '../../../core/index.ts';
import { knownFamily } from '../../knowledge/index.ts';
import { type LocalPod, type NodeView, rivalOf } from '../../node/index.ts';
import type { Asked, Goal, Target } from '../asked.ts';
import { editing, showingListeners } from '../commands.ts';
import { lookElsewhere } from '../elsewhere/elsewhere.ts';
import { whereServed } from '../find/find-port.ts';
import { bothHave } from '../links/next-hop.ts';
import { refusedByPod } from '../pods/routes.ts';
import type { Finding, Report } from '../report.ts';
import { doubtOf, programsSeeing } from './doubts.ts';
import { acceptsAddress, fullOf, type Hearing, hearingOf, isHeardAt, listenerText } from './hearing.ts';

/** What a process listens on that hears all. */
const ANY = { IPv4: '0.0.0.0', IPv6: '::' } as const;

/**
 * Looks whether a process listens where the packets arrive, for endpoints of this node; those of others are another matter.
 *
 * @param within the pod that they do not leave, which may have addresses that others have too. @default they go by their addresses
 */
export function lookAtSockets(
  asked: Asked,
  goals: readonly Goal[],
  node: NodeView,
  report: Report,
  within?: LocalPod,
): void {
  const elsewhere: Goal[] = [];
  let heard = 0;
  for (const goal of goals) {
    const text = formatIp(goal.ip);
    const isHost = !within && node.isOwnAddress(text);
    const pod = isHost ? undefined : (within ?? podAt(goal, asked.target.protocol, node));
    if (!isHost && !pod) {
      elsewhere.push(goal);
      continue;
    }
    const foreign = pod && node.rulesIn(pod, goal.ip.family);
    if (foreign) report.cannotTellEndpoint('endpoint', goal.address, `${text} has rules of its own: ${foreign.text}`);
    // Somebody else than who listens there may get what comes.
    if (foreign?.lead) continue;
    const hearing = hearingOf(goal, asked.target.protocol, pod, node);
    const doubt = doubtOf(asked, hearing, node);
    const finding = doubt === undefined ? unheard(asked, hearing, within, node) : undefined;
    const unknown = doubt ?? (finding ? undefined : programsSeeing(hearing, node));
    const rival = finding && pod && !within ? rivalOf(goal.ip, pod, node.allPods) : undefined;
    // Whoever is found may serve.
    if (rival && isHeardAt(goal, asked.target.protocol, node, rival))
      report.cannotTellEndpoint('endpoint', goal.address, bothHave(text, rival));
    else if (finding) {
      const value = hearing.listeners.map(listenerText).join(', ') || 'none';
      const evidence = { source: 'sock_diag', object: pod?.netns ?? 'this node', value };
      report.failEndpoint('endpoint', goal.address, finding, [evidence]);
    } else if (unknown !== undefined) report.cannotTellEndpoint('endpoint', goal.address, unknown);
    else heard++;
  }
  if (heard > 0) report.stage('endpoint', 'ok', `a process listens at ${heard} of ${goals.length}`);
  lookElsewhere(asked, elsewhere, node, report);
}

/** Of several pods with one address, which are told of elsewhere, one that hears what comes. */
function podAt(goal: Goal, protocol: Target['protocol'], node: NodeView): LocalPod | undefined {
  const pods = node.podsAt(formatIp(goal.ip));
  return pods.find(({ netns }) => pods.length > 1 && isHeardAt(goal, protocol, node, netns)) ?? pods[0];
}

/** Why no process hears what comes; undefined: one does. */
function unheard(asked: Asked, hearing: Hearing, within: LocalPod | undefined, node: NodeView): Finding | undefined {
  const finding = judge(asked, hearing);
  if (!finding) return undefined;
  if (!hearing.pod) return notServedHere(asked, hearing.goal) ?? finding;
  return (within && keptFromService(asked, within, node)) ?? finding;
}

/** An address of this node that rules pass by although a NodePort has the number. */
function notServedHere({ target, knowledge }: Asked, { ip, port }: Goal): Finding | undefined {
  const { destination } = knowledge;
  if (target.service || destination.kind !== 'address' || destination.nodePortOf === null) return undefined;
  const served = knownFamily(knowledge, ip.family)?.nodePortAddresses ?? 'all';
  let where = 'not at loopback addresses';
  if (served !== 'all') {
    where = served.length > 0 ? `at ${served.slice(0, 3).join(', ')} alone` : `nor at any other ${ip.family} address`;
  }
  const text = `${port} is the NodePort of ${destination.nodePortOf}, and NodePorts do not answer at ${formatIp(ip)}, ${where}`;
  return {
    code: 'nodeport-address',
    text,
    remedy: whereServed(knowledge, { family: ip.family, nodePort: port, protocol: target.protocol }),
  };
}

/** A Service's address that the pod which asks for it has itself. */
function keptFromService({ target, client }: Asked, pod: LocalPod, node: NodeView): Finding | undefined {
  const packets = { source: client.ip, destination: target.ip, flow: undefined, isSentOn: false };
  const kept = target.service && refusedByPod(pod, packets, node, 'leave it by another link than');
  return kept?.isLost ? { code: 'pod-route', text: kept.text, remedy: kept.remedy } : undefined;
}

function judge({ target }: Asked, hearing: Hearing): Finding | undefined {
  const { goal, protocol, pod, where, listeners, atPort, taking } = hearing;
  const { ip, port, address } = goal;
  const { netns } = pod ?? {};
  const listening = (what: string) => `${showingListeners(protocol, { netns, port })}   # ${what}`;
  const [full, ...others] = fullOf(hearing);
  if (full && others.length === taking.length - 1) {
    const text = `${full.queued} connections wait at ${address} to be accepted, ${full.queueLimit} may`;
    const remedy = [listening('places taken and in all: more instances, or a larger backlog (net.core.somaxconn)')];
    return { code: 'accept-queue', text, remedy };
  }
  if (taking.length > 0) return undefined;
  if (atPort.length === 0) {
    const elsewhere = listeners.filter((one) => acceptsAddress(one, ip)).map(listenerText);
    const open = elsewhere.length === 0 ? 'on no port at all' : `but on ${elsewhere.slice(0, 4).join(', ')}`;
    const remedy = [...withTargetPort(target), showingListeners(protocol, { netns })];
    return { code: 'target-port', text: `nobody listens on ${port} in ${where}, ${open}`, remedy };
  }
  const loopback = atPort.find((one) => isLoopback(one.address));
  if (loopback) {
    const text = `the process in ${where} listens on ${listenerText(loopback)} alone`;
    return { code: 'loopback-bound', text, remedy: [listening(`let it listen on ${ANY[ip.family]}`)] };
  }
  const text = `the process in ${where} listens on ${atPort.map(listenerText).join(', ')}, not for ${ip.family} at ${formatIp(ip)}`;
  const code = atPort.every((one) => one.address.family !== ip.family) ? 'family' : 'target-port';
  return { code, text, remedy: [listening(`let it listen on ${ANY[ip.family]}`)] };
}

function withTargetPort({ service }: Target): readonly string[] {
  return service ? [editing(service.service.name, 'spec.ports: the targetPort')] : [];
}

/** The rules come first: a process of the node that listens there hears nothing, and one may be given the number for a connection. */
export function lookAtNodePort(target: Target, node: NodeView, report: Report): void {
  const { port } = target;
  if (isHeardAt(target, target.protocol, node))
    report.warn('nodeport-clash', `a process of this node listens on ${port} too, and gets nothing from outside`);
  const { range, has } = node.localPorts();
  if (has(port)) {
    const text = `${port} lies in net.ipv4.ip_local_port_range (${range}) and is not reserved: the kernel may give it to a connection of this node's own`;
    report.warn('nodeport-clash', text);
  }
}

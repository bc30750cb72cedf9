import {
  addressBits,
  cidrContains,
  formatCidr,
  formatIp,
  IP_PROTOCOLS,
  type IpAddress,
  ipEquals,
  isLoopback,
} from '../../core/index.ts';
import type { Listener } from '../../netlink/sock-diag/index.ts';
import type { LocalPod, NodeView } from '../node/index.ts';
import type { Asked, Goal, Target } from './asked.ts';
import { lookElsewhere } from './elsewhere.ts';
import { refusedByPod } from './pods/routes.ts';
import type { Finding, Report } from './report.ts';

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
  const { protocol } = asked.target;
  const elsewhere: Goal[] = [];
  let heard = 0;
  for (const goal of goals) {
    const text = formatIp(goal.ip);
    const isHost = !within && node.isOwnAddress(text);
    const pod = isHost ? undefined : (within ?? node.podsAt(text)[0]);
    if (!isHost && !pod) {
      elsewhere.push(goal);
      continue;
    }
    const foreign = pod && node.rulesIn(pod, goal.ip.family);
    if (foreign) report.cannotTellEndpoint('endpoint', goal.address, `${text} has rules of its own: ${foreign.text}`);
    // Somebody else than who listens there may get what comes.
    if (foreign?.lead) continue;
    const listeners = node.listeners(protocol, pod?.netns);
    const where = pod ? `pod ${within?.ip ?? text}` : 'this node';
    const doubt =
      doubtOf(listeners, goal, where, protocol) ??
      (protocol === 'TCP' ? crowdedAt(goal, listeners, node, pod?.netns) : undefined) ??
      answersElsewhere(asked, goal, listeners, pod, node);
    if (doubt) {
      report.cannotTellEndpoint('endpoint', goal.address, doubt);
      continue;
    }
    const heardBy = judge(listeners, goal, where, protocol);
    const finding =
      heardBy &&
      ((isHost && notServedHere(asked, goal)) || (within && keptFromService(asked, within, node)) || heardBy);
    if (finding) {
      const value = listeners.map(show).join(', ') || 'none';
      report.failEndpoint('endpoint', goal.address, finding, [
        { source: 'sock_diag', object: pod?.netns ?? 'this node', value },
      ]);
      continue;
    }
    const programs = programsAt(goal, listeners, protocol, node);
    if (programs.length > 0) {
      const text = `programs of BPF see what comes to the process in ${where}, and its answers (${programs.join(', ')}): what they do is not simulated`;
      report.cannotTellEndpoint('endpoint', goal.address, text);
    } else heard++;
  }
  if (heard > 0) report.stage('endpoint', 'ok', `a process listens at ${heard} of ${goals.length}`);
  lookElsewhere(asked, elsewhere, node, report);
}

/** Where programs of BPF hang in cgroups that see packets of the sockets which take what comes to a goal, and their calls with UDP. */
function programsAt({ ip, port }: Goal, listeners: readonly Listener[], protocol: Target['protocol'], node: NodeView) {
  const taking = listeners.filter((one) => one.port === port && takes(one, ip));
  const { ofPackets, ofCalls } = node.programsSeeing(taking);
  return [...ofPackets, ...ofCalls.filter((name) => protocol === 'UDP' && name.startsWith('udp'))];
}

/** An address of this node that rules pass by although a NodePort has the number. */
function notServedHere({ target, knowledge }: Asked, { ip, port }: Goal): Finding | undefined {
  const { destination, families } = knowledge;
  if (target.service || destination.kind !== 'address' || destination.nodePortOf === null) return undefined;
  const served = families.find(({ family }) => family === ip.family)?.nodePortAddresses ?? 'all';
  const where = served === 'all' ? 'not at loopback addresses' : `at ${served.slice(0, 3).join(', ')} alone`;
  const text = `${port} is the NodePort of ${destination.nodePortOf}, and NodePorts do not answer at ${formatIp(ip)}, ${where}`;
  return { code: 'nodeport-address', text };
}

/** A Service's address that the pod which asks for it has itself. */
function keptFromService({ target, client }: Asked, pod: LocalPod, node: NodeView): Finding | undefined {
  const packets = { source: client.ip, destination: target.ip, flow: undefined, isSentOn: false };
  const kept = target.service && refusedByPod(pod, packets, node, 'leave it by another link than');
  return kept?.isLost ? { code: 'pod-route', text: kept.text, remedy: kept.remedy } : undefined;
}

function judge(
  listeners: readonly Listener[],
  { ip, port, address }: Goal,
  where: string,
  protocol: Target['protocol'],
): Finding | undefined {
  const atPort = listeners.filter((one) => one.port === port);
  const taking = takenBy(atPort, ip);
  const [full, ...others] = fullOf(taking, protocol);
  if (full && others.length === taking.length - 1) {
    const text = `${full.queued} connections wait at ${address} to be accepted, ${full.queueLimit} may`;
    return { code: 'accept-queue', text };
  }
  if (taking.length > 0) return undefined;
  if (atPort.length === 0) {
    const others = listeners.filter((one) => takes(one, ip)).map(show);
    const open = others.length === 0 ? 'on no port at all' : `but on ${others.slice(0, 4).join(', ')}`;
    return { code: 'target-port', text: `nobody listens on ${port} in ${where}, ${open}` };
  }
  const loopback = atPort.find((one) => isLoopback(one.address));
  if (loopback) return { code: 'loopback-bound', text: `the process in ${where} listens on ${show(loopback)} alone` };
  const text = `the process in ${where} listens on ${atPort.map(show).join(', ')}, not for ${ip.family} at ${formatIp(ip)}`;
  return { code: atPort.every((one) => one.address.family !== ip.family) ? 'family' : 'target-port', text };
}

/** Whether a process listens at an own address and port. @param netns of a pod. @default the node's */
export function isHeardAt(
  { ip, port }: Pick<Goal, 'ip' | 'port'>,
  protocol: Target['protocol'],
  node: NodeView,
  netns?: string,
): boolean {
  return node.listeners(protocol, netns).some((one) => one.port === port && takes(one, ip));
}

/** Whether somebody may listen at an address and port: a pod of this node or a process that does, or whoever has an address that is not behind a link of its pods. */
export function mayBeHeardAt(goal: Goal, protocol: Target['protocol'], node: NodeView): boolean {
  const { ip } = goal;
  const pods = node.podsAt(formatIp(ip));
  if (pods.length > 0) return pods.some(({ netns }) => isHeardAt(goal, protocol, node, netns));
  if (node.isOwnAddress(formatIp(ip))) return isHeardAt(goal, protocol, node);
  const way = node.route({ destination: ip });
  return (
    way.kind === 'route' && !node.localPods(ip.family).some(({ seenAs }) => seenAs?.index === way.route.outInterface)
  );
}

/** Those with no room for one more connection (sk_acceptq_is_full); of UDP what waits is no connection. */
function fullOf(taking: readonly Listener[], protocol: Target['protocol']): readonly Listener[] {
  return protocol === 'UDP' ? [] : taking.filter(({ queued, queueLimit }) => queued > queueLimit);
}

/**
 * Of the sockets at a port those that the kernel chooses from: one of the address itself is better than one of all, and one of all of
 * its family better than a dual one (compute_score, net/ipv4/inet_hashtables.c).
 */
function takenBy(atPort: readonly Listener[], ip: IpAddress): readonly Listener[] {
  const taking = atPort.filter((one) => takes(one, ip));
  const own = taking.filter(({ address }) => ipEquals(address, ip));
  const ofFamily = taking.filter(({ address }) => address.family === ip.family);
  return [own, ofFamily, taking].find((some) => some.length > 0) ?? [];
}

/** What the kernel counts for the smallest datagram that waits (SKB_TRUESIZE, include/linux/skbuff.h). */
const LEAST_DATAGRAM = 768;

/**
 * Why it cannot be told whether a process hears it: some sockets take packets of one interface alone, or signed ones, or some of several
 * are full.
 */
function doubtOf(
  listeners: readonly Listener[],
  { ip, port, address, source }: Goal,
  where: string,
  protocol: Target['protocol'],
): string | undefined {
  const atPort = listeners.filter((one) => one.port === port);
  const bound = atPort.find((one) => one.boundTo !== undefined && takes(one, ip));
  if (bound) return `the process in ${where} listens on ${show(bound)} for one interface alone (SO_BINDTODEVICE)`;
  const taking = takenBy(atPort, ip);
  const unread = protocol === 'UDP' && taking.find(({ queued, queueLimit }) => queued + LEAST_DATAGRAM > queueLimit);
  if (unread) {
    const waiting = `${unread.queued} bytes wait at ${address} to be read, ${unread.queueLimit} may`;
    return `${waiting}: what comes is dropped unless the process reads meanwhile`;
  }
  const full = fullOf(taking, protocol);
  if (full.length > 0 && full.length === taking.length) return undefined;
  const signed = taking.flatMap(({ signedFrom = [] }) => signedFrom);
  const key = signed.find((peers) => (source ? cidrContains(peers, source) : peers.address.family === ip.family));
  if (key) return `the process in ${where} takes only packets from ${formatCidr(key)} that are signed (TCP-MD5)`;
  if (full.length === 0) return undefined;
  return `${full.length} of ${taking.length} sockets at ${address} have no room for connections, and the kernel chooses`;
}

/**
 * Why a socket may have no room for one more connection that is being opened: without syncookies as many may be as may wait to be
 * accepted, and where the kernel does not know the peer, no more than three quarters of tcp_max_syn_backlog (tcp_conn_request,
 * net/ipv4/tcp_input.c). Each is open or given up before long, so that it is never said that all fail.
 */
function crowdedAt(
  { ip, port, address }: Goal,
  listeners: readonly Listener[],
  node: NodeView,
  netns: string | undefined,
): string | undefined {
  const taking = takenBy(
    listeners.filter((one) => one.port === port),
    ip,
  );
  if (taking.length === 0 || fullOf(taking, 'TCP').length > 0) return undefined;
  if ((node.sysctl('net/ipv4/tcp_syncookies', netns) ?? '0') !== '0') return undefined;
  const most = Number(node.sysctl('net/ipv4/tcp_max_syn_backlog', netns) ?? Infinity);
  const room = Math.min(...taking.map(({ queueLimit }) => queueLimit), most - (most >> 2) + 1);
  const opening = node.beingOpened(port, netns);
  if (opening < room) return undefined;
  const shown = `${opening} connections to ${address} are being opened, and without syncookies (net.ipv4.tcp_syncookies 0) there is room for ${room}`;
  return `${shown}: new ones are dropped unless some of these end meanwhile`;
}

/**
 * Why answers of UDP may come from where nobody waits for them: those of a socket of all addresses have the one that the way to the
 * client has (udp_sendmsg, net/ipv4/udp.c), unless the process asks for another. Undefined: they do not, or did not for this client.
 */
function answersElsewhere(
  { target, client }: Asked,
  { ip, port, address, source }: Goal,
  listeners: readonly Listener[],
  pod: LocalPod | undefined,
  node: NodeView,
): string | undefined {
  if (target.protocol !== 'UDP' || source === undefined) return undefined;
  const atPort = listeners.filter((one) => one.port === port);
  if (!takenBy(atPort, ip).some((one) => !ipEquals(one.address, ip))) return undefined;
  const back = { destination: source };
  const way = pod ? node.routeIn(pod, back) : node.route(back);
  const from = way.kind === 'route' ? way.route.source : undefined;
  if (from === undefined || ipEquals(from, ip)) return undefined;
  const isAnswered = node.tracking
    .flowsTo({ protocol: IP_PROTOCOLS.UDP, port: target.port, ip: target.ip })
    .some(({ flow: { original, reply }, answered }) => {
      return (
        answered && ipEquals(original.source, client.ip) && ipEquals(reply.source, ip) && reply.sourcePort === port
      );
    });
  if (isAnswered) return undefined;
  const shown = `the process at ${address} listens on all addresses, and answers UDP from ${formatIp(from)}`;
  return `${shown} unless it asks for the one it was sent to (IP_PKTINFO)`;
}

function takes({ address, dual }: Listener, ip: IpAddress): boolean {
  if (address.family !== ip.family) return dual && ip.family === 'IPv4';
  return (
    ipEquals(address, { family: ip.family, bytes: new Uint8Array(addressBits(ip.family) / 8) }) || ipEquals(address, ip)
  );
}

function show({ address, port }: Listener): string {
  const ip = formatIp(address);
  return address.family === 'IPv4' ? `${ip}:${port}` : `[${ip}]:${port}`;
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

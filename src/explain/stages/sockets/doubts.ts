import { cidrContains, formatCidr, formatIp, IP_PROTOCOLS, ipEquals } from '../../../core/index.ts';
import { isSameWay, type NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { acceptsAddress, fullOf, type Hearing, listenerText } from './hearing.ts';

/** What the kernel counts for the smallest datagram that waits (SKB_TRUESIZE, include/linux/skbuff.h). */
const LEAST_DATAGRAM = 768;

/** Why it cannot be told whether a process hears what comes, and is heard; undefined: it can. */
export function doubtOf(asked: Asked, hearing: Hearing, node: NodeView): string | undefined {
  return (
    ofOneInterface(hearing) ??
    unread(hearing) ??
    signed(hearing) ??
    marked(hearing, node) ??
    partlyFull(hearing) ??
    crowded(hearing, node) ??
    answersElsewhere(asked, hearing, node)
  );
}

function ofOneInterface({ goal: { ip }, atPort, where }: Hearing): string | undefined {
  const bound = atPort.find((one) => one.boundTo !== undefined && acceptsAddress(one, ip));
  return bound && `the process in ${where} listens on ${listenerText(bound)} for one interface alone (SO_BINDTODEVICE)`;
}

function unread({ goal: { address }, protocol, taking }: Hearing): string | undefined {
  if (protocol !== 'UDP') return undefined;
  const full = taking.find(({ queued, queueLimit }) => queued + LEAST_DATAGRAM > queueLimit);
  if (!full) return undefined;
  const waiting = `${full.queued} bytes wait at ${address} to be read, ${full.queueLimit} may`;
  return `${waiting}: what comes is dropped unless the process reads meanwhile`;
}

/** Nothing where all are full: what comes is dropped, signed or not. */
function signed(hearing: Hearing): string | undefined {
  const { goal, taking, where } = hearing;
  if (fullOf(hearing).length === taking.length) return undefined;
  const { source, ip } = goal;
  const keys = taking.flatMap(({ signedFrom = [] }) => signedFrom);
  const key = keys.find((peers) => (source ? cidrContains(peers, source) : peers.address.family === ip.family));
  return key && `the process in ${where} takes only packets from ${formatCidr(key)} that are signed (TCP-MD5)`;
}

/** Marks of sockets on this node are followed through its rules (stages/later). */
function marked({ goal: { ip, source }, pod, taking, where }: Hearing, node: NodeView): string | undefined {
  const mark = taking.find((one) => one.mark !== undefined)?.mark;
  if (!pod || !source || mark === undefined) return undefined;
  const answers = { destination: source, source: ip };
  if (isSameWay(node.routeIn(pod, answers), node.routeIn(pod, { ...answers, mark }))) return undefined;
  return `the process in ${where} marks its answers (SO_MARK 0x${mark.toString(16)}), which policy rules there ask for`;
}

function partlyFull(hearing: Hearing): string | undefined {
  const [full, all] = [fullOf(hearing).length, hearing.taking.length];
  if (full === 0 || full === all) return undefined;
  return `${full} of ${all} sockets at ${hearing.goal.address} have no room for connections, and the kernel chooses`;
}

/**
 * A socket may have no room for one more connection that is being opened: without syncookies as many may be as may wait to be
 * accepted, and where the kernel does not know the peer, no more than three quarters of tcp_max_syn_backlog (tcp_conn_request,
 * net/ipv4/tcp_input.c). Each is open or given up before long, so that it is never said that all fail.
 */
function crowded(hearing: Hearing, node: NodeView): string | undefined {
  const { goal, protocol, pod, taking } = hearing;
  if (protocol !== 'TCP' || taking.length === 0 || fullOf(hearing).length > 0) return undefined;
  if ((node.sysctl('net/ipv4/tcp_syncookies', pod?.netns) ?? '0') !== '0') return undefined;
  const most = Number(node.sysctl('net/ipv4/tcp_max_syn_backlog', pod?.netns) ?? Infinity);
  const room = Math.min(...taking.map(({ queueLimit }) => queueLimit), most - (most >> 2) + 1);
  const opening = node.beingOpened(goal.port, pod?.netns);
  if (opening < room) return undefined;
  const shown = `${opening} connections to ${goal.address} are being opened, and without syncookies (net.ipv4.tcp_syncookies 0) there is room for ${room}`;
  return `${shown}: new ones are dropped unless some of these end meanwhile`;
}

/**
 * Answers of UDP may come from where nobody waits for them: those of a socket of all addresses have the one that the way to the
 * client has (udp_sendmsg, net/ipv4/udp.c), unless the process asks for another. Undefined: they do not, or did not for this client.
 */
function answersElsewhere(
  { target, client }: Asked,
  { goal, protocol, pod, taking }: Hearing,
  node: NodeView,
): string | undefined {
  const { ip, port, address, source } = goal;
  if (protocol !== 'UDP' || source === undefined) return undefined;
  if (!taking.some((one) => !ipEquals(one.address, ip))) return undefined;
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

/** Programs of BPF in cgroups that see packets of the sockets that take what comes, and their calls with UDP; undefined: none. */
export function programsSeeing({ goal, protocol, atPort, where }: Hearing, node: NodeView): string | undefined {
  const { ofPackets, ofCalls } = node.programsSeeing(atPort.filter((one) => acceptsAddress(one, goal.ip)));
  const places = [...ofPackets, ...ofCalls.filter((name) => protocol === 'UDP' && name.startsWith('udp'))];
  if (places.length === 0) return undefined;
  const text = `programs of BPF see what comes to the process in ${where}, and its answers (${places.join(', ')})`;
  return `${text}: what they do is not simulated`;
}

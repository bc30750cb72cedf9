import { RTN_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import { type Branch, type Meeting, walkAll } from '../choices.ts';
import {
  type Connection,
  type Ends,
  type FirstPacket,
  type Interface,
  KnownBytes,
  Packet,
  TCP_HANDSHAKE,
  type TooBig,
} from '../packet/index.ts';
import { askedOnce } from './asked-once.ts';
import type { Hook, Host, RuleSource, Situation, StationResult, Step } from './source.ts';
import { IPS, TRANSLATIONS_DONE } from './translate.ts';
import { walkHook } from './walk-hook.ts';

/** How a packet ends on this host. */
export type End =
  | { readonly kind: 'delivered' }
  | { readonly kind: 'sent'; readonly by: Interface }
  | { readonly kind: 'no route' }
  /** `cannot tell` without `at`: it is not known where the routing table sends it. */
  | Exclude<StationResult, { readonly kind: 'accept' | 'sent anew' }>;

/** A packet's way through the host. */
export interface Walk {
  readonly steps: readonly Step[];
  readonly end: End;
  /** As it was at its end: translated, marked. */
  readonly packet: Packet;
  /** Its mark when it was routed last, which policy rules may have asked for. */
  readonly routedBy: KnownBytes;
  /** The source it had then. */
  readonly routedFrom: KnownBytes;
  /** What it was when it was routed first, coming in by an interface. @default it was not */
  readonly arrived?: Arrived | undefined;
}

export interface Arrived {
  readonly mark: KnownBytes;
  readonly source: KnownBytes;
  readonly destination: KnownBytes;
}

/** The ways that chance and ignorance leave open; not `complete`: there are more than are walked. */
export interface Walks {
  readonly branches: readonly Branch<Walk>[];
  readonly complete: boolean;
}

/** Where a packet comes from: an interface, or this host. */
export type Origin = Interface | 'this host';

/** More ways than this through the rules are not begun. A Service has at most 1,000 endpoints in a slice, and 1,024 are drawn from up to seven times. */
const MOST_WAYS = 8192;

/**
 * Walks the first packet of a flow through the rules of a host, all ways that chance and ignorance leave open.
 *
 * @param sources all that has rules on the host: a source that is left out counts as empty
 * @param everyPath also the ways that differ by rules alone, and meet again. @default false
 * @param sentBefore the packet was sent before, and dropped on this way. @default it was not
 * @throws whatever the reading of rules throws
 */
export function walkPacket(
  question: FirstPacket,
  origin: Origin,
  sources: readonly RuleSource[],
  host: Host,
  { everyPath = false, sentBefore }: { readonly everyPath?: boolean; readonly sentBefore?: Packet | undefined } = {},
): Walks {
  const asked = askedOnce(host);
  return walkAll((choose, met) => {
    const meeting = everyPath ? NEVER_MEETING : met;
    const packet = new Packet(question);
    packet.sentBefore = sentBefore;
    return walkOnce(packet, origin, sources, { host: asked, choose, meeting });
  }, MOST_WAYS);
}

/** What became of a flow's first packet. */
export interface Flow {
  /** How it began, before any translation. */
  readonly first: FirstPacket;
  /** Its ends that were changed on the way; where to is needed of later packets alone. */
  readonly translated: Partial<Ends>;
  /** Rules have kept it out of connection tracking, which knows no such flow then. @default they have not */
  readonly untracked?: boolean | undefined;
  /** IPVS has sent its first packet on, and translates what follows that and what answers it. @default it has not */
  readonly byIpvs?: boolean | undefined;
  /** The mark that connection tracking has for it, as the packets before have left it, in host byte order. @default not known */
  readonly mark?: KnownBytes | undefined;
  /** The mark that a process of this host gives its answers. @default none */
  readonly answersBy?: KnownBytes | undefined;
}

/** Of TCP: the answer that agrees to the connection, or what comes once it is established, with data or without (`bare`). */
export type LaterPacket = 'first' | 'later' | 'bare';

const FLAGS: Readonly<Record<LaterPacket, number>> = {
  first: TCP_HANDSHAKE.answer,
  later: TCP_HANDSHAKE.data,
  bare: TCP_HANDSHAKE.agreed,
};

/**
 * Walks an answer on its way back, as the flow's own translations have left it: chains of type nat do not see it.
 *
 * @param answer from the endpoint to the client; its ports are those of the endpoint and of the client
 * @param isInvalid connection tracking takes it for no part of the flow
 */
export function walkAnswer(
  answer: FirstPacket,
  which: LaterPacket,
  isInvalid: boolean,
  flow: Flow,
  origin: Origin,
  sources: readonly RuleSource[],
  host: Host,
): Walks {
  const { source: masqueraded } = flow.translated;
  const made = () => {
    const packet = packetOf({ ...answer, tcpFlags: FLAGS[which] }, flow, 'reply', which !== 'first');
    packet.isInvalid = isInvalid;
    if (flow.answersBy) packet.mark = flow.answersBy;
    if (flow.byIpvs) {
      const { destination: source, destinationPort: sourcePort } = new Packet(flow.first).ends;
      packet.ipvsSource = { source, sourcePort };
    }
    // Before it is translated back it is for whom the client's packets seem to come from.
    if (masqueraded?.isKnown) packet.translate({ destination: masqueraded });
    return packet;
  };
  return walkEach(made, origin, sources, host);
}

/**
 * Walks the client's next packet, once its first one was answered.
 *
 * @param isInvalid connection tracking takes it for no part of the flow
 */
export function walkNext(
  flow: Flow,
  isInvalid: boolean,
  origin: Origin,
  sources: readonly RuleSource[],
  host: Host,
  which: Exclude<LaterPacket, 'first'> = 'later',
): Walks {
  const made = () => {
    const packet = packetOf({ ...flow.first, tcpFlags: FLAGS[which] }, flow, 'original', true);
    packet.isInvalid = isInvalid;
    if (flow.byIpvs) {
      const { destination, destinationPort } = { ...packet.ends, ...flow.translated };
      packet.ipvsDestination = { destination, destinationPort };
    }
    return packet;
  };
  return walkEach(made, origin, sources, host);
}

const ANSWERED = IPS.confirmed | IPS.seenReply | TRANSLATIONS_DONE;

/**
 * One of a flow whose first packet was answered.
 *
 * @param isAssured not the answer itself: the client's next packet assures the flow, of TCP (tcp_in_window comes first, nf_conntrack_proto_tcp.c)
 */
function packetOf(
  written: FirstPacket,
  { first, translated, untracked, byIpvs, mark = KnownBytes.unknown(4) }: Flow,
  direction: Connection['direction'],
  isAssured: boolean,
): Packet {
  const { source, destination, destinationPort } = translated;
  const packet = new Packet(written);
  if (untracked) return packet;
  packet.flow = {
    state: 'established',
    direction,
    original: new Packet(first).ends,
    status:
      ANSWERED |
      (isAssured ? IPS.assured : 0) |
      (source ? IPS.srcNat : 0) |
      // Of what IPVS translates connection tracking knows from whom answers come, and has no translation (ip_vs_update_conntrack, ip_vs_nfct.c).
      (!byIpvs && (destination !== undefined || destinationPort) ? IPS.dstNat : 0),
    mark,
    translated,
  };
  return packet;
}

/**
 * Walks an answer that connection tracking takes for no part of its flow (`ct state invalid`): whatever lets it pass, it is not
 * translated back.
 */
export function walkInvalidAnswer(
  answer: FirstPacket,
  origin: Origin,
  sources: readonly RuleSource[],
  host: Host,
): Walks {
  const made = () => {
    const packet = new Packet(answer);
    packet.isInvalid = true;
    return packet;
  };
  return walkEach(made, origin, sources, host);
}

/** @param made a packet for each way through the rules */
function walkEach(made: () => Packet, origin: Origin, sources: readonly RuleSource[], host: Host): Walks {
  const asked = askedOnce(host);
  return walkAll((choose, meeting) => walkOnce(made(), origin, sources, { host: asked, choose, meeting }), MOST_WAYS);
}

/**
 * Walks what this host tells a sender whose packet does not fit the way on: it belongs to the sender's flow (`ct state related`).
 */
export function walkTooBig(message: TooBig, sources: readonly RuleSource[], host: Host): Walks {
  return walkAll((choose, meeting) => {
    const packet = new Packet(message);
    packet.connection = {
      state: 'related',
      direction: 'reply',
      original: {
        source: KnownBytes.of(message.destination.bytes),
        destination: KnownBytes.unknown(message.destination.bytes.length),
        sourcePort: KnownBytes.unknown(2),
        destinationPort: KnownBytes.unknown(2),
      },
      status: TRANSLATIONS_DONE,
      mark: KnownBytes.unknown(4),
    };
    return walkOnce(packet, 'this host', sources, { host, choose, meeting });
  }, MOST_WAYS);
}

const NO_MARK = KnownBytes.of(new Uint8Array(4));

const NEVER_MEETING: Meeting = { made: 0, at: () => {} };

function walkOnce(
  packet: Packet,
  origin: Origin,
  sources: readonly RuleSource[],
  surroundings: Omit<Situation, 'packet'>,
): Walk {
  const situation = { ...surroundings, packet };
  const { host } = surroundings;
  const steps: Step[] = [];
  let [routedBy, routedFrom] = [packet.mark, packet.ends.source];
  let arrived: Arrived | undefined;
  /** Where it goes, by the last time it was routed. */
  let way: Way | undefined;
  /** Routes it, by the mark it has now; what ends it there, if anything does. */
  const routed = (): End | undefined => {
    [routedBy, routedFrom] = [packet.mark, packet.ends.source];
    if (origin !== 'this host')
      arrived ??= { mark: packet.mark, source: routedFrom, destination: packet.ends.destination };
    const found = route(packet, host);
    if ('kind' in found) return found;
    way = found;
    return undefined;
  };
  /** Through some hooks; what ends the packet there, if anything does. */
  const through = (...hooks: Hook[]): End | undefined => {
    for (const hook of hooks) {
      const result = walkHook(hook, sources, situation, steps, routed);
      if (result.kind === 'sent anew') return sendAnew();
      if (result.kind !== 'accept') return result;
    }
    return undefined;
  };
  /** Only to other hosts: what goes to this one is not sent anew (ip_vs_nat_send_or_cont, net/netfilter/ipvs/ip_vs_xmit.c). */
  const sendAnew = (): End => {
    const { mark } = packet;
    // By its destination alone (__ip_vs_get_out_rt of the same), and what is tracked then by its mark, as for translation (nf_nat_ipv4_local_fn).
    packet.mark = NO_MARK;
    const alone = routed();
    packet.mark = mark;
    const refused = alone ?? (typeof packet.connection === 'object' ? routed() : undefined);
    if (refused) return refused;
    const { iif } = packet;
    [packet.iif, packet.oif] = [undefined, way!.oif];
    const ended = through('output');
    if (ended) return ended;
    // Of the hook behind it the kernel tells where it came in (skb->dev in ip_output, net/ipv4/ip_output.c).
    packet.iif = iif;
    return through('postrouting') ?? { kind: 'sent', by: way!.oif };
  };
  /** From a process of this host to an interface, where it ends unless that is `lo`. */
  const goOut = (): End | undefined => {
    const refused = routed();
    if (refused) return refused;
    packet.oif = way!.oif;
    const ended = through('output');
    if (ended) return ended;
    // It may have been routed anew there, and the hook has seen it leave by the first way nevertheless.
    const { oif, local } = way!;
    packet.oif = oif;
    const left = through('postrouting');
    if (left || !local) return left ?? { kind: 'sent', by: oif };
    // Its flow is entered behind the last of these hooks (nf_confirm), and it keeps it on the way back in.
    const { connection } = packet;
    if (typeof connection === 'object') connection.status |= IPS.confirmed;
    [packet.iif, packet.oif] = [oif, undefined];
    return undefined;
  };
  /** From an interface to a process of this host, or to another interface. */
  const comeIn = (): End => {
    const { destination } = packet.ends;
    const bridge = origin === 'this host' ? undefined : host.switchedBy?.(packet);
    const ended = through('prerouting');
    if (ended) return ended;
    // What comes back in by lo keeps the way it was sent by (loopback_xmit: skb_dst_force), unless it is for somebody else now.
    const isRouted = (bridge || origin === 'this host') && packet.ends.destination.text === destination.text;
    if (bridge && isRouted) way = { oif: bridge, local: false };
    const refused = isRouted ? undefined : routed();
    if (refused) return refused;
    const { oif, local } = way!;
    if (local) return through('input') ?? { kind: 'delivered' };
    packet.oif = oif;
    const stopped = through('forward');
    if (stopped) return stopped;
    // Of frames that a bridge sends on, hook postrouting is told no `in` (br_nf_post_routing, net/bridge/br_netfilter_hooks.c).
    const { oif: out } = way!;
    packet.oif = out;
    packet.isIifSeen = out.index !== packet.iif?.index;
    return through('postrouting') ?? { kind: 'sent', by: out };
  };
  if (origin !== 'this host') packet.iif = origin;
  const end = (origin === 'this host' ? goOut() : undefined) ?? comeIn();
  return { end, steps, packet, routedBy, routedFrom, arrived };
}

interface Way {
  readonly oif: Interface;
  readonly local: boolean;
}

function route(packet: Packet, host: Host): Way | End {
  const type = host.addressType(packet.ends.destination);
  const oif = host.interfaceTo(packet, 'destination');
  if (type === undefined || oif === undefined) return { kind: 'cannot tell', about: 'its route' };
  if (oif === 'none') return { kind: 'no route' };
  return { oif, local: type === RTN_LOCAL };
}

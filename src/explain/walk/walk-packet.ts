import { type Branch, type Meeting, type Most, walkAll } from '../choices.ts';
import {
  type Connection,
  type Ends,
  type FirstPacket,
  KnownBytes,
  Packet,
  TCP_HANDSHAKE,
  type TooBig,
} from '../packet/index.ts';
import { askedOnce } from './asked-once.ts';
import { type Start, type Walk, walkOnce } from './journey.ts';
import { IPS, TRANSLATIONS_DONE } from './translate.ts';

/** The ways that chance and ignorance leave open; not `complete`: there are more than are walked. */
export interface Walks {
  readonly branches: readonly Branch<Walk>[];
  readonly complete: boolean;
}

/**
 * More than this is not walked. It is enough for a Service of 1,000 endpoints without affinity (in mode nftables 1,024
 * and 512 ways), and takes about a second: what is asked of the kernel for a way costs as much as a thousand rules.
 */
const MOST: Most = { ways: 8192, rules: { most: 2_000_000, perWay: 1100 } };

/**
 * Walks the first packet of a flow through the rules of a host, all ways that chance and ignorance leave open.
 *
 * @param everyPath also the ways that differ by rules alone, and meet again. @default false
 * @param sentBefore the packet was sent before, and dropped on this way. @default it was not
 * @throws whatever the reading of rules throws
 */
export function walkPacket(
  question: FirstPacket,
  start: Start,
  { everyPath = false, sentBefore }: { readonly everyPath?: boolean; readonly sentBefore?: Packet | undefined } = {},
): Walks {
  const asked = { ...start, host: askedOnce(start.host) };
  return walkAll((choose, met) => {
    const meeting = everyPath ? NEVER_MEETING : met;
    const packet = new Packet(question);
    packet.sentBefore = sentBefore;
    return walkOnce(asked, { packet, choose, meeting });
  }, MOST);
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

/** What is to be known of a packet of a flow that is answered. */
export interface Later<Which extends LaterPacket = LaterPacket> {
  readonly which: Which;
  /** Connection tracking takes it for no part of the flow. */
  readonly isInvalid: boolean;
}

const FLAGS: Readonly<Record<LaterPacket, number>> = {
  first: TCP_HANDSHAKE.answer,
  later: TCP_HANDSHAKE.data,
  bare: TCP_HANDSHAKE.agreed,
};

/**
 * Walks an answer on its way back, as the flow's own translations have left it: chains of type nat do not see it.
 *
 * @param answer from the endpoint to the client; its ports are those of the endpoint and of the client
 */
export function walkAnswer(answer: FirstPacket, { which, isInvalid }: Later, flow: Flow, start: Start): Walks {
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
  return walkEach(made, start);
}

/** Walks the client's next packet, once its first one was answered. */
export function walkNext(flow: Flow, { which, isInvalid }: Later<'later' | 'bare'>, start: Start): Walks {
  const made = () => {
    const packet = packetOf({ ...flow.first, tcpFlags: FLAGS[which] }, flow, 'original', true);
    packet.isInvalid = isInvalid;
    if (flow.byIpvs) {
      const { destination, destinationPort } = { ...packet.ends, ...flow.translated };
      packet.ipvsDestination = { destination, destinationPort };
    }
    return packet;
  };
  return walkEach(made, start);
}

const ANSWERED = IPS.confirmed | IPS.seenReply | TRANSLATIONS_DONE;

/**
 * One of a flow whose first packet was answered.
 *
 * @param isAssured not the answer itself: the client's next packet assures the flow, of TCP (tcp_in_window comes first,
 *   nf_conntrack_proto_tcp.c)
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
      // Of what IPVS translates connection tracking knows from whom answers come, and has no translation
      // (ip_vs_update_conntrack, ip_vs_nfct.c).
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
export function walkInvalidAnswer(answer: FirstPacket, start: Start): Walks {
  const made = () => {
    const packet = new Packet(answer);
    packet.isInvalid = true;
    return packet;
  };
  return walkEach(made, start);
}

/** @param made a packet for each way through the rules */
function walkEach(made: () => Packet, start: Start): Walks {
  const asked = { ...start, host: askedOnce(start.host) };
  return walkAll((choose, meeting) => walkOnce(asked, { packet: made(), choose, meeting }), MOST);
}

/**
 * Walks what this host tells a sender whose packet does not fit the way on: it belongs to the sender's flow (`ct state
 * related`).
 */
export function walkTooBig(message: TooBig, start: Omit<Start, 'origin'>): Walks {
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
    return walkOnce({ ...start, origin: 'this host' }, { packet, choose, meeting });
  }, MOST);
}

const NEVER_MEETING: Meeting = { evaluated: () => {}, isJoining: false, made: 0, at: () => {} };

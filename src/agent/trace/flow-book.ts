import { type IpAddress, ipEquals } from '../../core/index.ts';
import type { Flow, FlowDirection, FlowEvent } from '../../netlink/conntrack/index.ts';
import type { TraceEvent } from '../../netlink/nftables/index.ts';
import { LOOPBACK_IFINDEX } from '../../netlink/uapi/index.ts';
import { isIcmp, readIcmpError } from './icmp/read-icmp.ts';
import { readPacket, type TracedPacket } from './read-packet.ts';
import { placeOf, type TracedTuple } from './trace-table.ts';
import { isOf, type KernelDrop, type TracedFlow, turned, UNSPECIFIED, type Way } from './traced-flow.ts';

/** Events and flows kept: a trace is for people. */
const MOST_EVENTS = 1000;
const MOST_FLOWS = 100;

/** A packet whose trace goes on. */
interface Passing {
  readonly flow: TracedFlow;
  readonly way: Way;
}

/**
 * Puts the kernel's events together to flows: conntrack's by what the flow was asked for, the rules' by the connection's number where
 * the kernel tells it, else by the packet's number and by addresses and ports as they are before and after translation.
 */
export class FlowBook {
  readonly #tuples: readonly TracedTuple[];
  readonly #flows: TracedFlow[] = [];
  /** By conntrack's number. */
  readonly #tracked = new Map<number, Flow>();
  /** By conntrack's number, as traces tell it: conntrack's own events come by another socket, perhaps later. */
  readonly #numbered = new Map<number, TracedFlow>();
  /** By the trace's number of the packet, the oldest first. */
  readonly #passing = new Map<number, Passing>();
  readonly #drops: { readonly packet: TracedPacket; readonly drop: KernelDrop }[] = [];
  #ended = false;

  constructor(tuples: readonly TracedTuple[]) {
    this.#tuples = tuples;
  }

  /** In the order in which they were first seen. */
  get flows(): readonly TracedFlow[] {
    return this.#flows;
  }

  /** More flows were seen than are kept. */
  get overflowed(): boolean {
    return this.#ended;
  }

  /** A flow that was there before. */
  known(flow: Flow): void {
    if (this.#isAsked(flow.protocol, flow.original)) this.#tracked.set(flow.id, flow);
  }

  /** @param at monotonic milliseconds */
  connection({ kind, flow, answered }: FlowEvent, at: number): void {
    if (!this.#isAsked(flow.protocol, flow.original)) return;
    // That one from before ends says nothing of how packets fare now.
    if (kind === 'ended' && !this.#find(flow.protocol, flow.original)) return;
    const old = this.#tracked.has(flow.id) && !this.#find(flow.protocol, flow.original);
    this.#tracked.set(flow.id, flow);
    const traced = this.#open(flow.protocol, flow.original, at, old);
    if (!traced) return;
    translate(traced, flow);
    if (answered) traced.answeredAt ??= at;
  }

  /** @param at monotonic milliseconds */
  packet(event: TraceEvent, at: number): void {
    const packet = event.networkHeader && readPacket(event.networkHeader, event.transportHeader);
    const passing = this.#passing.get(event.id) ?? this.#enter(event, packet, at);
    if (!passing) return;
    const { flow, way } = passing;
    if (event.connection) this.#numbered.set(event.connection.id, flow);
    if (packet && way === flow.there) noteTranslation(flow, packet);
    // Told once in a chain, by its first event.
    way.iif ??= event.iif;
    way.oif = event.oif ?? way.oif;
    const place = placeOf(event.table, event.chain);
    if (place) {
      way.last = { hook: place.hook, late: place.stage === 'late' };
      if (place.stage === 'late' && event.type === 'policy') this.#leave(passing, place.hook, at);
    } else if (event.verdict === 'drop') {
      const { tableFamily: family, table, chain, type, handle } = event;
      way.drop = { family, table, chain, handle: type === 'policy' ? undefined : handle };
      // By a chain behind our last one.
      way.through = undefined;
    }
  }

  /** What the drop monitor tells. Of others' packets, too, which count for nothing. */
  dropped(packet: TracedPacket, drop: KernelDrop): void {
    this.#drops.push({ packet, drop });
    if (this.#drops.length > MOST_EVENTS) this.#drops.shift();
  }

  /** Puts what was dropped to its flows, once all is told: it may have come before what tells of the flow. */
  settle(): void {
    for (const { packet, drop } of this.#drops) {
      for (const flow of this.#flows) {
        const way = wayOf(flow, packet);
        // Of one that was sent again another packet may have had a reason.
        if (way && (!way.kernelDrop || way.kernelDrop.reason === UNSPECIFIED)) way.kernelDrop = drop;
      }
    }
  }

  #leave({ flow, way }: Passing, hook: string, at: number): void {
    // What leaves by lo comes in by it at once, and meets rules there.
    if (hook === 'postrouting' && way.oif !== LOOPBACK_IFINDEX) way.through = 'out';
    else if (hook === 'input') way.through = 'in';
    if (way.through && way === flow.back) flow.answeredAt ??= at;
  }

  /** The first event of a packet. Its later ones follow its number, for their headers change. */
  #enter(event: TraceEvent, packet: TracedPacket | undefined, at: number): Passing | undefined {
    if (!packet) return undefined;
    if (isIcmp(packet.protocol)) return this.#enterError(event);
    const found = this.#flowOf(event, packet, at);
    if (!found) return undefined;
    const way = found.flow[found.direction];
    // What comes again, as a SYN that got no answer, says no more than the first did, and may get further.
    if (!way.through) {
      way.drop = undefined;
      way.flags = packet.flags;
    }
    return this.#pass(event, { flow: found.flow, way: way.through ? blankWay() : way });
  }

  /** Of a message that a packet will not arrive: the answer of a flow that has no other. */
  #enterError({ id, connection, networkHeader, transportHeader }: TraceEvent): Passing | undefined {
    const error = networkHeader && readIcmpError(networkHeader, transportHeader);
    if (!error || connection?.direction === 'original') return undefined;
    const numbered = connection && this.#numbered.get(connection.id);
    const tracked = connection && this.#tracked.get(connection.id);
    const flow =
      numbered ??
      (tracked ? this.#find(tracked.protocol, tracked.original) : undefined) ??
      // The kernel copies too little of it to tell which flow of this client it is about.
      this.#flows.findLast(({ original, maskedAs }) => {
        return ipEquals(error.to, original.source) || (maskedAs !== undefined && ipEquals(error.to, maskedAs));
      });
    if (!flow || flow.back.last || flow.answeredAt !== undefined) return undefined;
    flow.back.flags = error.text;
    return this.#pass({ id }, { flow, way: flow.back });
  }

  #pass({ id }: Pick<TraceEvent, 'id'>, passing: Passing): Passing {
    this.#passing.set(id, passing);
    if (this.#passing.size > MOST_EVENTS) this.#passing.delete(this.#passing.keys().next().value!);
    return passing;
  }

  #flowOf(
    { connection }: TraceEvent,
    packet: TracedPacket,
    at: number,
  ): { flow: TracedFlow; direction: 'there' | 'back' } | undefined {
    if (connection) {
      const tracked = this.#tracked.get(connection.id);
      const flow = this.#numbered.get(connection.id) ?? (tracked && this.#openTracked(tracked, at));
      if (flow) return { flow, direction: connection.direction === 'reply' ? 'back' : 'there' };
    }
    if (this.#isAsked(packet.protocol, packet)) {
      const flow = this.#open(packet.protocol, packet, at, false);
      return flow && { flow, direction: 'there' };
    }
    for (const tracked of this.#tracked.values()) {
      if (tracked.protocol !== packet.protocol) continue;
      const there = sameEnds(packet, turned(tracked.reply));
      const back = sameEnds(packet, tracked.reply) || sameEnds(packet, turned(tracked.original));
      const flow = there || back ? this.#openTracked(tracked, at) : undefined;
      if (flow) return { flow, direction: there ? 'there' : 'back' };
    }
    const answered = this.#flows.find((flow) => isOf(flow, 'back', packet));
    return answered && { flow: answered, direction: 'back' };
  }

  #openTracked(tracked: Flow, at: number): TracedFlow | undefined {
    const flow = this.#open(tracked.protocol, tracked.original, at, true);
    if (flow) translate(flow, tracked);
    return flow;
  }

  #find(protocol: number, original: FlowDirection): TracedFlow | undefined {
    return this.#flows.find((flow) => flow.protocol === protocol && sameEnds(flow.original, original));
  }

  #open(protocol: number, ends: FlowDirection, at: number, old: boolean): TracedFlow | undefined {
    const known = this.#find(protocol, ends);
    if (known) return known;
    if (this.#flows.length === MOST_FLOWS) {
      this.#ended = true;
      return undefined;
    }
    const { source, sourcePort, destination, destinationPort } = ends;
    const flow: TracedFlow = {
      protocol,
      original: { source, sourcePort, destination, destinationPort },
      at,
      endpoint: undefined,
      maskedAs: undefined,
      there: blankWay(),
      back: blankWay(),
      answeredAt: undefined,
      old,
    };
    this.#flows.push(flow);
    return flow;
  }

  #isAsked(protocol: number, { source, destination, destinationPort }: FlowDirection): boolean {
    return this.#tuples.some(
      (tuple) =>
        tuple.protocol === protocol &&
        tuple.port === destinationPort &&
        ipEquals(tuple.destination, destination) &&
        (!tuple.source || ipEquals(tuple.source, source)),
    );
  }
}

const blankWay = (): Way => ({
  flags: '',
  iif: undefined,
  oif: undefined,
  last: undefined,
  through: undefined,
  drop: undefined,
  kernelDrop: undefined,
});

function sameEnds(a: FlowDirection, b: FlowDirection): boolean {
  return (
    a.sourcePort === b.sourcePort &&
    a.destinationPort === b.destinationPort &&
    ipEquals(a.source, b.source) &&
    ipEquals(a.destination, b.destination)
  );
}

/** The direction of a flow that a packet is of, translated or not; undefined: it is another's. */
function wayOf(flow: TracedFlow, packet: TracedPacket): Way | undefined {
  if (isOf(flow, 'back', packet)) return flow.back;
  return isOf(flow, 'there', packet) ? flow.there : undefined;
}

/** By what conntrack says. */
function translate(flow: TracedFlow, { reply }: Flow): void {
  noteTranslation(flow, turned(reply));
}

/** @param now the flow's ends as the packet carries them on its way there */
function noteTranslation(flow: TracedFlow, now: FlowDirection): void {
  const { original } = flow;
  const changed: (a: IpAddress, b: IpAddress) => boolean = (a, b) => !ipEquals(a, b);
  if (changed(now.destination, original.destination) || now.destinationPort !== original.destinationPort) {
    flow.endpoint = { address: now.destination, port: now.destinationPort };
  }
  if (changed(now.source, original.source)) flow.maskedAs = now.source;
}

import { setTimeout as delay } from 'node:timers/promises';
import { ByteWriter, type KernelError, NodeplaneError } from '../core/index.ts';
import { sleepSync } from '../sys/index.ts';
import { decodeAcknowledgement, keptChanging, Listing, type PayloadFilter, refusal } from './answers.ts';
import { appendMessage, type NetlinkMessage, type NetlinkRequest, readMessages } from './message.ts';
import { openSocket, type SocketOptions } from './socket.ts';
import type { BatchTransport, NetlinkTransport } from './transport.ts';
import {
  NETLINK_ROUTE,
  NLM_F_ACK,
  NLM_F_DUMP,
  NLM_F_REQUEST,
  NLMSG_DONE,
  NLMSG_ERROR,
  NLMSG_MIN_TYPE,
  NLMSG_OVERRUN,
} from './uapi/netlink.ts';

/**
 * Waits before a listing that was interrupted is read again. What interrupted it comes in bursts, such as a node's start or
 * a large change of addresses; together they keep others from the event loop for 31 ms at most.
 */
const DUMP_RETRY_WAITS_MS = [1, 2, 4, 8, 16];

/** Requests a datagram of `attempt`: their acknowledgements, about a kilobyte each in the kernel's books, must fit the receive queue. */
const REQUESTS_AT_ONCE = 2000;

/** What became of changes and questions sent together. */
export interface Exchange {
  /** For each change undefined, or why it was refused (ERR_NETLINK_ACK). */
  readonly refusals: readonly (KernelError | undefined)[];
  /** For each question the payload of its answer, a copy, or why it was refused. */
  readonly answers: readonly (Uint8Array | KernelError)[];
}

/**
 * A conversation with the kernel over one netlink socket: requests, and the answers that belong to them.
 *
 * Everything is synchronous, because the kernel does the work inside send(2). Answers are matched by sequence number and
 * port ID; what is left over from a request that failed half-way is recognised by its older number and dropped.
 */
export class Netlink {
  readonly #transport: NetlinkTransport & Partial<Pick<BatchTransport, 'sendAsync'>>;
  readonly #frame = new ByteWriter(4096);
  readonly #sleep: (ms: number) => void;
  #nextSequence: number;
  /** A listing whose end was not read. */
  #unfinished: Listing | undefined;
  /** Its reader waits for a turn to go on. */
  #isWaitedFor = false;

  /**
   * Numbers the requests from `firstSequence` on, through 2^32 - 1 to 0.
   *
   * @param sleep holds up the thread before a listing is read again
   */
  constructor(
    transport: NetlinkTransport & Partial<Pick<BatchTransport, 'sendAsync'>>,
    firstSequence = 1,
    sleep = sleepSync,
  ) {
    this.#transport = transport;
    this.#nextSequence = firstSequence;
    this.#sleep = sleep;
  }

  /** The port ID of its socket, by which the kernel says who made a change. */
  get portId(): number {
    return this.#transport.portId;
  }

  /** Opens a NETLINK_ROUTE socket in the namespace of the calling thread (`inNetns` for another); it stays bound to it. */
  static openRoute(options?: SocketOptions): Netlink {
    return Netlink.open(NETLINK_ROUTE, options);
  }

  /** Opens a socket of any netlink protocol in the namespace of the calling thread. Throws ERR_NETLINK_SOCKET. */
  static open(protocol: number, options?: SocketOptions): Netlink {
    return new Netlink(openSocket(protocol, options));
  }

  /**
   * Sends all requests in one datagram (of more than 2,000 each 2,000). The last one has NLM_F_ACK: the kernel tells of a
   * refusal unasked, and works on the messages one after the other, so that the last answer comes behind all refusals. An
   * acknowledgement costs about as much as adding a route.
   *
   * The kernel goes on after a request that it refuses: what follows a refused request has been tried too. Requests that
   * depend on each other and must not outlive a failure go into calls of their own.
   *
   * @throws KernelError ERR_NETLINK_ACK for the first refused request; ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
   */
  execute(...requests: readonly NetlinkRequest[]): void {
    const refused = this.attempt(requests).find((error) => error !== undefined);
    if (refused) throw refused;
  }

  /**
   * As `execute`, for requests that do not depend on each other: what becomes of each is told.
   *
   * @returns for each request undefined, or why it was refused (ERR_NETLINK_ACK)
   * @throws ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
   */
  attempt(requests: readonly NetlinkRequest[]): readonly (KernelError | undefined)[] {
    if (requests.length <= REQUESTS_AT_ONCE) return this.exchange(requests, []).refusals;
    const refusals: (KernelError | undefined)[] = [];
    for (let start = 0; start < requests.length; start += REQUESTS_AT_ONCE) {
      refusals.push(...this.exchange(requests.slice(start, start + REQUESTS_AT_ONCE), []).refusals);
    }
    return refusals;
  }

  /**
   * Sends changes, and behind them questions that have one answer each, in one datagram: the answers show what the changes
   * have made. All changes are tried, as by `attempt`.
   *
   * @throws ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
   */
  exchange(changes: readonly NetlinkRequest[], questions: readonly NetlinkRequest[]): Exchange {
    const requests = questions.length === 0 ? changes : [...changes, ...questions];
    if (requests.length === 0) return { refusals: [], answers: [] };
    const first = this.#send(requests, NLM_F_ACK, changes.length - 1);
    const outcomes = this.#outcomes(requests, changes.length, first);
    if (questions.length === 0) return { refusals: outcomes as Exchange['refusals'], answers: [] };
    return {
      refusals: outcomes.slice(0, changes.length) as Exchange['refusals'],
      answers: outcomes.slice(changes.length) as Exchange['answers'],
    };
  }

  /**
   * As `execute`, with the event loop running while the kernel works, where the transport can do that. Until it is done
   * nothing else may be asked of this object.
   */
  async executeAsync(...requests: readonly NetlinkRequest[]): Promise<void> {
    const first = this.#encode(requests, NLM_F_ACK, requests.length - 1);
    const frame = this.#frame.written();
    if (this.#transport.sendAsync) await this.#transport.sendAsync(frame);
    else this.#transport.send(frame);
    const refused = this.#outcomes(requests, requests.length, first).find((error) => error !== undefined);
    if (refused) throw refused;
  }

  /**
   * Sends one request that has one answer, such as RTM_GETLINK by name.
   *
   * @returns the answer's payload, a copy
   * @throws KernelError ERR_NETLINK_ACK when refused; ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
   */
  query(request: NetlinkRequest): Uint8Array {
    const [answer] = this.exchange([], [request]).answers;
    if (!(answer instanceof Uint8Array)) throw answer;
    return answer;
  }

  /**
   * Lists objects (NLM_F_DUMP). A listing during which the objects changed (NLM_F_DUMP_INTR) may have lost some of
   * them and is read again, up to five times, after ever longer waits (31 ms in all).
   *
   * @param isWanted what of it is returned. @default all
   * @returns the payloads of all parts, copies
   * @throws KernelError ERR_NETLINK_ACK when refused; ERR_NETLINK_DUMP_INTERRUPTED, ERR_NETLINK_SOCKET,
   *   ERR_NETLINK_DECODE
   */
  dump(request: NetlinkRequest, isWanted?: PayloadFilter): Uint8Array[] {
    for (let attempt = 0; ; attempt++) {
      const { payloads, whole } = this.#dumpOnce(request, { isWanted });
      if (whole) return payloads;
      this.#sleep(this.#waitBeforeRetry(attempt, request));
    }
  }

  /**
   * As `dump`, handing over the event loop between datagrams. What is asked meanwhile reads the listing to its end first.
   *
   * @param pause resolves when the next datagram is to be read
   */
  async dumpAsync(request: NetlinkRequest, pause: () => Promise<void>): Promise<Uint8Array[]> {
    for (let attempt = 0; ; attempt++) {
      const listing = this.#begin(request);
      this.#readPart(listing);
      while (!listing.isOver) {
        this.#isWaitedFor = true;
        await pause();
        // Another request may have found it, and read it.
        if (!listing.isOver) this.#readPart(listing);
      }
      if (listing.isWhole) return listing.payloads;
      await delay(this.#waitBeforeRetry(attempt, request));
    }
  }

  /**
   * As `dump`, for objects that may change all the time, of which one that has just gone does no harm: when three readings
   * were interrupted, everything any of them told. What was there all the while, each of them would have to have lost.
   *
   * @returns payloads, copies; those of one object may be there several times
   * @throws KernelError ERR_NETLINK_ACK when refused; ERR_NETLINK_SOCKET, ERR_NETLINK_DECODE
   */
  dumpChanging(request: NetlinkRequest): Uint8Array[] {
    const all: Uint8Array[] = [];
    for (const waitMs of [...DUMP_RETRY_WAITS_MS.slice(0, 2), undefined]) {
      const { payloads, whole } = this.#dumpOnce(request);
      if (whole) return payloads;
      all.push(...payloads);
      if (waitMs !== undefined) this.#sleep(waitMs);
    }
    return all;
  }

  /** As `dump`, but no more once it has told `enough`: a sample, where the kernel has no order. The rest is read before the next request. */
  dumpBeginning(request: NetlinkRequest, enough: number): Uint8Array[] {
    return this.#dumpOnce(request, { enough }).payloads;
  }

  /** Gives the socket back. Safe to call twice. */
  close(): void {
    this.#transport.close();
  }

  /**
   * What became of requests of which the first `changes` are answered when they are refused, the last of them in any case, and
   * the others always.
   */
  #outcomes(
    requests: readonly NetlinkRequest[],
    changes: number,
    first: number,
  ): (Uint8Array | KernelError | undefined)[] {
    // Nearly all changes are answered by none: thousands come at a time.
    const outcomes = new Array<Uint8Array | KernelError | undefined>(requests.length).fill(undefined);
    const answered = new Set<number>();
    const isWaitedFor = (index: number) => index >= changes - 1;
    let missing = requests.length - Math.max(0, changes - 1);
    while (missing > 0) {
      for (const message of this.#receive(first, requests.length)) {
        const index = offsetOf(message, first);
        const request = requests[index]!;
        if (message.type >= NLMSG_MIN_TYPE) {
          if (index < changes) continue;
          outcomes[index] = new Uint8Array(message.payload);
        } else if (message.type === NLMSG_ERROR || (message.type === NLMSG_DONE && index >= changes)) {
          const answer = decodeAcknowledgement(message);
          if (answer.errno === 0 && index >= changes) {
            throw broken(`${request.operation} ${request.object} was acknowledged without an answer`);
          }
          outcomes[index] = answer.errno === 0 ? undefined : refusal(request, answer);
        } else continue;
        if (!isWaitedFor(index) || answered.has(index)) continue;
        answered.add(index);
        missing--;
      }
    }
    return outcomes;
  }

  /** Throws when the listing was read often enough. */
  #waitBeforeRetry(attempt: number, request: NetlinkRequest): number {
    const ms = DUMP_RETRY_WAITS_MS[attempt];
    if (ms === undefined) throw keptChanging(request, DUMP_RETRY_WAITS_MS.length + 1);
    return ms;
  }

  /** What one reading up to `enough` payloads told, and whether it is whole: the kernel did not flag it as interrupted. */
  #dumpOnce(
    request: NetlinkRequest,
    { enough = Number.POSITIVE_INFINITY, isWanted }: { enough?: number; isWanted?: PayloadFilter | undefined } = {},
  ): { readonly payloads: Uint8Array[]; readonly whole: boolean } {
    const listing = this.#begin(request, isWanted);
    while (!listing.isOver && listing.payloads.length < enough) this.#readPart(listing);
    return { payloads: listing.payloads, whole: listing.isWhole };
  }

  #begin(request: NetlinkRequest, isWanted?: PayloadFilter): Listing {
    const listing = new Listing(request, this.#send([request], NLM_F_DUMP, 0), isWanted);
    this.#unfinished = listing;
    return listing;
  }

  /** Reads one datagram of a listing. */
  #readPart(listing: Listing): void {
    this.#isWaitedFor = false;
    listing.take(this.#receive(listing.sequence, 1));
    if (listing.isOver) this.#unfinished = undefined;
  }

  /** Sends requests as one datagram, that at `flagged` with more flags; returns the first one's sequence number, which the others follow. */
  #send(requests: readonly NetlinkRequest[], flags: number, flagged: number): number {
    const first = this.#encode(requests, flags, flagged);
    this.#transport.send(this.#frame.written());
    return first;
  }

  #encode(requests: readonly NetlinkRequest[], flags: number, flagged: number): number {
    this.#finishListing();
    const first = this.#nextSequence;
    const { portId } = this.#transport;
    this.#frame.clear();
    for (let index = 0; index < requests.length; index++) {
      const { type, flags: own, payload } = requests[index]!;
      const all = NLM_F_REQUEST | (index === flagged ? flags : 0) | own;
      const sequence = (first + index) >>> 0;
      appendMessage(this.#frame, { type, flags: all, sequence, portId, payload });
    }
    this.#nextSequence = (first + requests.length) >>> 0;
    return first;
  }

  /** The messages of the next datagram that answer one of the `count` requests from sequence number `first` on. */
  *#receive(first: number, count: number): Generator<NetlinkMessage> {
    for (const message of readMessages(this.#transport.receive())) {
      if (message.portId !== this.#transport.portId) {
        throw broken(`an answer is addressed to port ${message.portId}, this is port ${this.#transport.portId}`);
      }
      const offset = offsetOf(message, first);
      if (offset < 0) continue;
      if (offset >= count) {
        throw broken(`an answer has sequence number ${message.sequence}, which was never sent`);
      }
      if (message.type === NLMSG_OVERRUN) throw broken('the kernel reports lost messages (NLMSG_OVERRUN)');
      yield message;
    }
  }

  /** Reads what is left of a listing, for its reader if that waits. Tried once: what cannot be read will not become readable. */
  #finishListing(): void {
    const [listing, isWaitedFor] = [this.#unfinished, this.#isWaitedFor];
    this.#isWaitedFor = false;
    this.#unfinished = undefined;
    while (listing && !listing.isOver) {
      if (isWaitedFor) {
        this.#readPart(listing);
        continue;
      }
      for (const message of readMessages(this.#transport.receive())) {
        const ends = message.type === NLMSG_DONE || message.type === NLMSG_ERROR;
        if (ends && message.sequence === listing.sequence) return;
      }
    }
  }
}

/** How far a message's sequence number lies after `first`, negative before it; right across the wrap at 2^32. */
function offsetOf(message: NetlinkMessage, first: number): number {
  return (message.sequence - first) | 0;
}

function broken(what: string): NodeplaneError {
  return new NodeplaneError('ERR_NETLINK_SOCKET', `The netlink conversation broke: ${what}`);
}

import { type Clock, NodeplaneError, systemClock, type Timer, tellFailure } from '../../core/index.ts';
import { type ApiClient, ApiStatusError } from '../api/client/api-client.ts';
import { sleep } from '../api/client/back-off.ts';
import { ObjectClient } from '../api/client/object-client.ts';
import { LeaseElection } from './lease-election.ts';
import { LEASES } from './lease-record.ts';

export interface LeaseKeeperOptions {
  /** Stays the caller's. One whose rate limit holds renewals back loses leases. */
  readonly client: ApiClient;
  readonly namespace: string;
  readonly name: string;
  /** Who we are: no other process, and no earlier one of this node, may have the same. A name and something random. */
  readonly identity: string;
  /** `leaseDurationSeconds`: others take the lease after so long without a renewal. @default 15 */
  readonly durationSeconds?: number;
  /**
   * We hold the lease for so long after we sent the last renewal that was done. What it is shorter than the duration is
   * the room for clocks that do not go at the same speed. @default 10
   */
  readonly renewDeadlineSeconds?: number;
  /** The lease is renewed this often, and looked at about as often while another holds it. @default 2 */
  readonly retrySeconds?: number;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
}

/** What a keeper tells. All calls are synchronous, `acquired` and `lost` in turns. */
export interface LeaseHandler {
  acquired(): void;
  /**
   * The lease is no longer ours; the keeper tries to get it back.
   *
   * @param reason for people: `the last renewal was sent 10 s ago`
   */
  lost(reason: string): void;
  /** A try failed; the next one follows. `error` is an ObjectError or another ERR_API. */
  failed(error: Error): void;
}

/** As in client-go, so that those who wait do not all come at once. */
const WAIT_JITTER = 1.2;

/**
 * Holds a Lease (coordination.k8s.io/v1) as long as it can: of all keepers of one Lease at most one `isHeld` at any time.
 * That is promised while nobody deletes the Lease or writes it by hand, and while no clock gains more on another than
 * renew deadline and duration differ (by default a half).
 *
 * The timing and the rules are those of client-go's leader election, and it can share a Lease with it.
 */
export class LeaseKeeper {
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #election: LeaseElection;
  readonly #identity: string;
  readonly #deadlineMs: number;
  readonly #retryMs: number;
  readonly #stopping = new AbortController();
  #handler: LeaseHandler | undefined;
  #running: Promise<void> = Promise.resolve();
  /** By the clock's `now`; undefined: not held. */
  #heldUntil: number | undefined;
  #deadline: Timer | undefined;

  /** @throws ERR_CONFIG for times with which no lease could be held */
  constructor(options: LeaseKeeperOptions) {
    const { client, namespace, name, identity, clock = systemClock, random = Math.random } = options;
    const { durationSeconds = 15, renewDeadlineSeconds = 10, retrySeconds = 2 } = options;
    checkOptions(identity, durationSeconds, renewDeadlineSeconds, retrySeconds);
    this.#clock = clock;
    this.#random = random;
    this.#identity = identity;
    this.#deadlineMs = renewDeadlineSeconds * 1000;
    this.#retryMs = retrySeconds * 1000;
    const leases = new ObjectClient({ client, resource: LEASES, fieldManager: 'nodeplane' });
    this.#election = new LeaseElection({ leases, lease: { name, namespace }, identity, durationSeconds, clock });
  }

  /** Whether the lease is ours at this moment, by the clock: right also when a busy process hears of its loss late. */
  get isHeld(): boolean {
    return this.#heldUntil !== undefined && this.#clock.now() < this.#heldUntil;
  }

  /** Who held the lease when it was last seen; empty: nobody; undefined: not known. For people. */
  get holder(): string | undefined {
    return this.#election.holder;
  }

  /** Begins to try. To be called once. */
  start(handler: LeaseHandler): void {
    this.#handler = handler;
    this.#running = this.#run(this.#stopping.signal).catch((error) => tellFailure('Lease', error));
  }

  /**
   * Gives the lease back. To be called when all work under it has ended: another may hold it before this resolves. Nothing
   * is told after this, and it never rejects; a lease that could not be given back expires.
   */
  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#heldUntil = undefined;
    this.#deadline?.cancel();
    this.#stopping.abort();
    await this.#running;
    await this.#inTime((signal) => this.#election.release(signal), new AbortController().signal).catch(() => {});
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const askedToWaitMs = await this.#try(signal);
      // A renewal comes on time; who waits for another's lease comes when the others do not.
      const jitter = this.isHeld ? 1 : 1 + this.#random() * WAIT_JITTER;
      await sleep(this.#clock, Math.max(askedToWaitMs, this.#retryMs * jitter), signal);
    }
  }

  /** Returns how long the server asks to wait. */
  async #try(signal: AbortSignal): Promise<number> {
    try {
      const sentAt = await this.#inTime((inTime) => this.#election.attempt(inTime), signal);
      if (signal.aborted) return 0;
      if (sentAt !== undefined) this.#renewed(sentAt);
      else if (this.holder !== this.#identity) this.#lose(`"${this.holder ?? ''}" holds it`);
      return 0;
    } catch (error) {
      if (signal.aborted) return 0;
      this.#handler?.failed(error as Error);
      return error instanceof ApiStatusError ? (error.retryAfterMs ?? 0) : 0;
    }
  }

  /** One request that gets no answer must not use up the time for the next one. */
  async #inTime<T>(attempt: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    const late = new AbortController();
    const timer = this.#clock.setTimer(() => late.abort(), this.#deadlineMs / 2);
    try {
      return await attempt(AbortSignal.any([signal, late.signal]));
    } finally {
      timer.cancel();
    }
  }

  /** From when the renewal was sent: others count from when they see it, which is later. */
  #renewed(sentAt: number): void {
    if (this.#heldUntil !== undefined && !this.isHeld) this.#expire();
    const heldUntil = sentAt + this.#deadlineMs;
    const left = heldUntil - this.#clock.now();
    if (left <= 0) return;
    const isNew = this.#heldUntil === undefined;
    this.#heldUntil = heldUntil;
    this.#deadline?.cancel();
    this.#deadline = this.#clock.setTimer(() => this.#expire(), left);
    if (isNew) this.#handler?.acquired();
  }

  #expire(): void {
    this.#lose(`the last renewal was sent ${this.#deadlineMs / 1000} s ago`);
  }

  #lose(reason: string): void {
    if (this.#heldUntil === undefined) return;
    this.#heldUntil = undefined;
    this.#deadline?.cancel();
    this.#handler?.lost(reason);
  }
}

/** As client-go refuses them. */
function checkOptions(identity: string, duration: number, renewDeadline: number, retry: number): void {
  const refuse = (what: string) => {
    throw new NodeplaneError('ERR_CONFIG', `Cannot keep a lease: ${what}`);
  };
  if (identity === '') refuse('the identity is empty');
  if (!Number.isInteger(duration)) refuse(`the duration has to be whole seconds, found ${duration}`);
  if (!(duration > renewDeadline)) refuse(`the duration (${duration} s) has to be longer than ${renewDeadline} s`);
  if (!(renewDeadline > retry * WAIT_JITTER)) {
    refuse(`the renew deadline (${renewDeadline} s) has to be longer than ${WAIT_JITTER} times ${retry} s`);
  }
  if (!(retry > 0)) refuse(`the time between two tries has to be more than nothing, found ${retry} s`);
}

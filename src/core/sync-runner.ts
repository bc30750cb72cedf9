import type { Clock, Timer } from './clock.ts';
import { NodeplaneError } from './errors.ts';

export interface SyncRunnerOptions {
  /** What it keeps in force, for errors: `routes IPv4`. */
  readonly name: string;
  readonly clock: Clock;
  /** Least time from the end of one run to the start of the next. */
  readonly minIntervalMs: number;
  /** A full run is made when the last one ended this long ago. */
  readonly maxIntervalMs: number;
  /** After a failure, and for what `requestRetry` leaves undone. */
  readonly retry: {
    /** Wait after the first failure; doubles with each further one. */
    readonly firstMs: number;
    /** The wait never grows beyond this. */
    readonly maxMs: number;
  };
  /**
   * 0 <= x < 1: shortens each retry's wait by up to a fifth, so that nodes that failed together do not retry together.
   * @default Math.random
   */
  readonly random?: () => number;
  /** The work. A rejection or a throw is a failure; the next run is then full. */
  readonly run: (full: boolean) => Promise<void>;
  /** Told about each failure. Must not throw. */
  readonly failed: (error: unknown, full: boolean, retryInMs: number) => void;
  /** Looks whether the last run still holds. @default never */
  readonly check?: SyncCheck | undefined;
}

/** A look at what was done, between the runs. */
export interface SyncCheck {
  /** Time from the end of one check, or of a full run, to the next check. */
  readonly intervalMs: number;
  /** It may call `requestFull`. A rejection or a throw ends this check alone; the next one comes in its time. */
  readonly run: () => Promise<void>;
  /** Told about each check that rejected or threw. Must not throw. */
  readonly failed: (error: unknown) => void;
}

/**
 * Decides when to sync: the one place that coalesces, bounds and retries.
 *
 * Runs never overlap. A request after a quiet time runs at once; requests in between run together as soon as the least
 * interval allows, and a request made during a run leads to another run. After a failure nothing runs before the retry:
 * it must be a full run, too costly to be repeated at the pace of events; only `requestFull` does not wait for it.
 *
 * Checks take turns with the runs. One that is due lets a requested run go first; only where requests never cease does it
 * go between two runs, once it is overdue by its whole interval. After a failure there is nothing to check.
 */
export class SyncRunner {
  readonly #options: SyncRunnerOptions;
  #state: 'new' | 'started' | 'stopped' = 'new';
  #requested: 'nothing' | 'changes' | 'full' = 'nothing';
  #timer: Timer | undefined;
  #running: Promise<void> | undefined;
  #failures = 0;
  /** When the last run, and the last successful full run, ended. */
  #lastEnd = Number.NEGATIVE_INFINITY;
  #lastFullEnd = Number.NEGATIVE_INFINITY;
  #lastCheckEnd = Number.NEGATIVE_INFINITY;
  #retryInMs = 0;
  #checkRequested = false;
  #retryRequested = false;
  /** Runs in a row that left something undone, and when it is tried again. */
  #undone = 0;
  #retryAt = Number.POSITIVE_INFINITY;
  /** Who waits for the end of the next full run. */
  #awaiting: { readonly done: () => void; readonly failed: (error: unknown) => void }[] = [];

  constructor(options: SyncRunnerOptions) {
    this.#options = options;
  }

  /** Begins with a full run. */
  start(): void {
    if (this.#state !== 'new') return;
    this.#state = 'started';
    this.requestFull();
  }

  /** Asks for a run that deals with what has changed. */
  request(): void {
    if (this.#requested === 'nothing') this.#requested = 'changes';
    this.#schedule();
  }

  /** Asks for a full run. */
  requestFull(): void {
    this.#requested = 'full';
    this.#retryInMs = 0;
    this.#schedule();
  }

  /**
   * Asks for a full run, and resolves at its end.
   *
   * @throws what makes the run fail; ERR_DATAPLANE when there will be none
   */
  runFull(): Promise<void> {
    if (this.#state !== 'started') return Promise.reject(this.#noRun());
    return new Promise((done, failed) => {
      this.#awaiting.push({ done, failed });
      this.requestFull();
    });
  }

  /** Does something else between the runs: none begins before it has ended. Rejects as it does, and with ERR_DATAPLANE after `stop`. */
  async between<T>(work: () => Promise<T>): Promise<T> {
    while (this.#running) await this.#running;
    // What it would work with is closed by now.
    if (this.#state === 'stopped') throw this.#noRun();
    this.#timer?.cancel();
    const done = work();
    this.#occupy(done.then(() => {}));
    return await done;
  }

  /**
   * From within a run: it is not to count as failed, but has left something undone that is worth another full run. That comes
   * after a wait that grows as after failures; other runs do not wait for it.
   */
  requestRetry(): void {
    this.#retryRequested = true;
  }

  /** Asks for a check before its time, because there is reason to think that the last run does not hold any more. */
  requestCheck(): void {
    this.#checkRequested = true;
    this.#schedule();
  }

  /** Starts nothing more; resolves when what goes on, if anything, has ended. */
  async stop(): Promise<void> {
    this.#state = 'stopped';
    this.#timer?.cancel();
    await this.#running;
    for (const { failed } of this.#awaiting.splice(0)) failed(this.#noRun());
  }

  #schedule(): void {
    if (this.#state !== 'started' || this.#running) return;
    this.#timer?.cancel();
    const delay = this.#delay();
    const checkDelay = this.#checkDelay();
    const checkFirst = checkDelay < delay || (checkDelay === 0 && this.#requested !== 'nothing');
    const begin = checkFirst ? () => this.#beginCheck() : () => this.#begin();
    this.#timer = this.#options.clock.setTimer(begin, Math.min(delay, checkDelay));
  }

  /** Milliseconds until the next run may or must begin. */
  #delay(): number {
    const { minIntervalMs } = this.#options;
    if (this.#failures > 0) return this.#remaining(this.#lastEnd, Math.max(minIntervalMs, this.#retryInMs));
    if (this.#requested !== 'nothing') return this.#remaining(this.#lastEnd, minIntervalMs);
    return Math.max(this.#remaining(this.#lastEnd, minIntervalMs), this.#untilFull());
  }

  /** Milliseconds until a full run is due that nobody has asked for. */
  #untilFull(): number {
    const { clock, maxIntervalMs } = this.#options;
    return Math.min(this.#remaining(this.#lastFullEnd, maxIntervalMs), Math.max(0, this.#retryAt - clock.now()));
  }

  /** Milliseconds until the next check may begin. */
  #checkDelay(): number {
    const { check } = this.#options;
    if (!check || this.#failures > 0 || this.#requested === 'full') return Number.POSITIVE_INFINITY;
    if (this.#checkRequested) return 0;
    const patience = this.#requested === 'nothing' ? check.intervalMs : 2 * check.intervalMs;
    return this.#remaining(this.#lastCheckEnd, patience);
  }

  #remaining(since: number, intervalMs: number): number {
    return Math.max(0, since + intervalMs - this.#options.clock.now());
  }

  #begin(): void {
    // A timer is exact to a millisecond.
    const overdue = this.#untilFull() < 1;
    const full = this.#requested === 'full' || this.#failures > 0 || overdue;
    this.#requested = 'nothing';
    if (full) this.#checkRequested = false;
    this.#occupy(this.#runOnce(full));
  }

  #beginCheck(): void {
    this.#occupy(this.#checkOnce());
  }

  /** Nothing else begins until `work` has ended, however it ends. */
  #occupy(work: Promise<void>): void {
    const settled = work.catch(() => {});
    this.#running = settled.finally(() => {
      this.#running = undefined;
      this.#schedule();
    });
  }

  async #checkOnce(): Promise<void> {
    const { check, clock } = this.#options;
    this.#checkRequested = false;
    try {
      await check?.run();
    } catch (error) {
      check?.failed(error);
    } finally {
      this.#lastCheckEnd = clock.now();
    }
  }

  async #runOnce(full: boolean): Promise<void> {
    const { clock, run, failed } = this.#options;
    this.#retryRequested = false;
    const awaiting = full ? this.#awaiting.splice(0) : [];
    try {
      await run(full);
      this.#lastEnd = clock.now();
      this.#failures = 0;
      this.#noteUndone(full);
      for (const { done } of awaiting) done();
      if (!full) return;
      this.#lastFullEnd = this.#lastEnd;
      this.#lastCheckEnd = this.#lastEnd;
    } catch (error) {
      this.#lastEnd = clock.now();
      this.#retryInMs = this.#backOff(this.#failures++);
      failed(error, full, this.#retryInMs);
      for (const waiting of awaiting) waiting.failed(error);
    }
  }

  #noteUndone(full: boolean): void {
    if (!this.#retryRequested) {
      this.#undone = 0;
      this.#retryAt = Number.POSITIVE_INFINITY;
    } else if (full || this.#undone === 0) this.#retryAt = this.#lastEnd + this.#backOff(this.#undone++);
  }

  #backOff(earlierFailures: number): number {
    const { retry, random = Math.random } = this.#options;
    const wait = Math.min(retry.maxMs, retry.firstMs * 2 ** earlierFailures);
    return Math.round(wait * (1 - random() / 5));
  }

  #noRun(): NodeplaneError {
    const { name } = this.#options;
    return new NodeplaneError(
      'ERR_DATAPLANE',
      `Cannot compare or write ${name}: its work has not begun, or has ended. Ask again once /readyz answers 200`,
    );
  }
}

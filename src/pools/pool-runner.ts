import { randomUUID } from 'node:crypto';
import { type Clock, systemClock, type Timer, tellFailure } from '../core/index.ts';
import type { ApiClient, ObjectEvent } from '../kube/index.ts';
import { BlockView } from './block-view.ts';
import {
  type BlockRequest,
  type BlockUse,
  decide,
  learn,
  type Memory,
  NO_MEMORY,
  type PoolProblem,
  type Situation,
  sending,
  type UsableBlock,
} from './decide/index.ts';
import { BlockWriter, type Performed } from './perform.ts';
import type { Pool } from './pool.ts';
import { type PoolTimes, poolTimes } from './times.ts';

/** A request that is not answered after so long is given up; it may be done all the same. */
const REQUEST_MS = 15_000;
/** What failed and was not tried again for so long is no longer wanted. */
const FAILURE_MS = 90_000;

export interface PoolRunnerOptions {
  /** Stays the caller's. */
  readonly client: ApiClient;
  /** The name of this node. */
  readonly node: string;
  /** The same on all nodes. */
  readonly pools: readonly Pool[];
  /**
   * The addresses of a range that this node uses, and could use: also of ranges that are not, or no longer, among `blocks`.
   * What was given out of a block counts within a minute after the block is no longer among them.
   */
  readonly use: (cidr: string) => BlockUse;
  /** As in `Situation`; what it answers may change: `useChanged`. */
  readonly isOfServices?: Situation['isOfServices'];
  /** After so long blocks of nodes that are gone are taken back: the same on all nodes. @default 15 min */
  readonly reclaimMs?: number;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
  /** Names this process, and no other there ever was. @default a random UUID */
  readonly session?: string;
}

/** What a runner tells. All calls are synchronous. */
export interface PoolHandler {
  /** `blocks()` are others than before. */
  changed(): void;
  /** All that is wrong at present, whenever that changes. */
  problems(problems: readonly PoolProblem[]): void;
}

/**
 * Holds blocks of pod addresses for this node, as many as it uses, and takes care of those that nodes left behind which
 * are gone. One request is under way at a time; what is done next is decided anew after each (`decide`).
 */
export class PoolRunner {
  readonly #view: BlockView;
  readonly #writer: BlockWriter;
  readonly #clock: Clock;
  readonly #situation: Omit<Situation, 'now'>;
  readonly #times: PoolTimes;
  readonly #stopping = new AbortController();
  readonly #failures = new Map<BlockRequest['kind'], PoolProblem & { readonly at: number }>();
  #handler: PoolHandler | undefined;
  #running: Promise<void> = Promise.resolve();
  #memory: Memory = NO_MEMORY;
  #usable: readonly UsableBlock[] = [];
  #toldBlocks = '';
  #toldProblems = '';
  #isSynced = false;
  /** Something was heard that the next decision may depend on. */
  #isWoken = false;
  #wake: (() => void) | undefined;

  constructor(options: PoolRunnerOptions) {
    const { client, node, pools, use, isOfServices, reclaimMs, session = randomUUID() } = options;
    const { clock = systemClock, random = Math.random } = options;
    this.#clock = clock;
    this.#times = poolTimes(reclaimMs);
    this.#view = new BlockView(node, pools);
    this.#writer = new BlockWriter({ client, node, session, clock });
    this.#situation = { node, session, view: this.#view, use, isOfServices, times: this.#times, random };
  }

  /** To be told of every Node and every PodCIDRBlock. What is not about this node costs no decision. */
  event(event: ObjectEvent): void {
    if (this.#view.apply(event)) this.#wakeUp();
  }

  /** All Nodes and blocks that existed at the start were told; nothing is done before. */
  synced(): void {
    this.#isSynced = true;
    this.#wakeUp();
  }

  /** Addresses were given or came back: looked at now, and not within a few seconds. */
  useChanged(): void {
    this.#wakeUp();
  }

  /** The ranges that pods may get addresses from at this moment: right also when a busy process decides late. */
  blocks(): readonly string[] {
    const now = this.#clock.now();
    return this.#usable.flatMap(({ cidr, until }) => (now < until ? cidr : []));
  }

  /** To be called once. */
  start(handler: PoolHandler): void {
    this.#handler = handler;
    this.#running = this.#run(this.#stopping.signal).catch((error) => tellFailure('pod address blocks', error));
  }

  /** Nothing is told after this, and no block given. They stay this node's: pods live on. */
  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#usable = [];
    this.#stopping.abort();
    this.#wakeUp();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#isWoken = false;
      const waitMs = this.#isSynced ? await this.#step(signal) : this.#times.tickMs;
      if (waitMs > 0) await this.#sleep(waitMs);
    }
  }

  /** Returns how long to wait for the next decision. */
  async #step(signal: AbortSignal): Promise<number> {
    const { memory, usable, request, againMs, problems } = decide(this.#now(), this.#memory);
    this.#memory = memory;
    this.#usable = usable;
    this.#tell(problems);
    if (!request) return againMs;
    this.#memory = sending(request, memory);
    const sentAt = this.#clock.now();
    const { outcome, error } = await this.#inTime(request, signal);
    if (signal.aborted) return 0;
    this.#memory = learn(request, { sentAt, outcome }, this.#now(), this.#memory);
    const at = this.#clock.now();
    if (error) this.#failures.set(request.kind, { code: error.code, message: error.message, at });
    else this.#failures.delete(request.kind);
    return 0;
  }

  #now(): Situation {
    return { ...this.#situation, now: this.#clock.now() };
  }

  async #inTime(request: BlockRequest, signal: AbortSignal): Promise<Performed> {
    const late = new AbortController();
    const timer = this.#clock.setTimer(() => late.abort(), REQUEST_MS);
    try {
      return await this.#writer.perform(request, AbortSignal.any([signal, late.signal]));
    } finally {
      timer.cancel();
    }
  }

  #tell(problems: readonly PoolProblem[]): void {
    const blocks = this.blocks().join(' ');
    const isNew = blocks !== this.#toldBlocks;
    this.#toldBlocks = blocks;
    const failures = [...this.#failures.values()].filter(({ at }) => this.#clock.now() < at + FAILURE_MS);
    const all = [...problems, ...failures.map(({ code, message }) => ({ code, message }))];
    const text = JSON.stringify(all);
    const areOthers = text !== this.#toldProblems && (all.length > 0 || this.#toldProblems !== '');
    this.#toldProblems = all.length > 0 ? text : '';
    if (isNew) this.#handler?.changed();
    if (areOthers) this.#handler?.problems(all);
  }

  #wakeUp(): void {
    this.#isWoken = true;
    this.#wake?.();
  }

  /** Until something is heard, at most so long. */
  #sleep(ms: number): Promise<void> {
    if (this.#isWoken) return Promise.resolve();
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const wake = () => {
        timer?.cancel();
        this.#wake = undefined;
        resolve();
      };
      this.#wake = wake;
      timer = this.#clock.setTimer(wake, ms);
    });
  }
}

import { attempt, type Clock, Pace, REPAIRS, type Timer } from '../core/index.ts';
import type { NftEvent, TableRef } from '../netlink/nftables/index.ts';

/** Opens the kernel's stream of changes; `close` ends it. Of what this process changes the generations alone need be told. */
export type WatchNftables = (listener: (event: NftEvent) => void) => { close(): void };

export interface ForeignWatchOptions {
  readonly watch: WatchNftables;
  readonly tables: readonly TableRef[];
  readonly clock: Clock;
  /** Several changes within this time are told as one; where they never end, those within a second. */
  readonly debounceMs: number;
  /** The ruleset's generation now. */
  readonly generation: () => number;
  /** Somebody else changed one of the tables, or may have. */
  readonly changed: () => void;
}

/** Notices that somebody else changed tables of ours. What this process changes is nothing to be told. */
export class ForeignWatch {
  readonly #options: ForeignWatchOptions;
  #stream: { close(): void } | undefined;
  #touched = false;
  #timer: Timer | undefined;
  readonly #pace = new Pace(REPAIRS);
  /** The ruleset's generation after our last commit. */
  #ownGeneration: number | undefined;
  /** Generations of which all was heard, and between which nobody else changed the tables. */
  #untouched: { readonly since: number; readonly until: number } | undefined;

  constructor(options: ForeignWatchOptions) {
    this.#options = options;
  }

  /**
   * Listens from now on.
   *
   * @param generation after our last commit: if the ruleset has another one by now, somebody was there in between
   */
  start(generation: number | undefined): void {
    this.#ownGeneration = generation ?? this.#ownGeneration;
    if (this.#stream) return;
    this.#touched = false;
    this.#stream = this.#options.watch((event) => this.#take(event));
    this.#compareGenerations();
  }

  get isListening(): boolean {
    return this.#stream !== undefined;
  }

  /**
   * The last generation heard of, if nobody else has changed the tables since an earlier one: their rules need not be read back.
   *
   * @returns undefined when somebody has, or not all was heard
   */
  untouchedUntil(since: number): number | undefined {
    const known = this.#untouched;
    return known && known.since <= since && since <= known.until ? known.until : undefined;
  }

  /** Stops listening; `start` begins again. */
  close(): void {
    this.#stream?.close();
    this.#stream = undefined;
    this.#untouched = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** After a commit of ours. */
  committed(generation: number | undefined): void {
    this.#ownGeneration = generation ?? this.#ownGeneration;
  }

  #take(event: NftEvent): void {
    if (event.kind === 'overrun') {
      this.#compareGenerations();
    } else if (event.kind === 'generation') {
      const byOthers = this.#touched && !event.own;
      if (byOthers) this.#tell();
      this.#follow(event.generation, byOthers);
      this.#touched = false;
    } else {
      const { tables } = this.#options;
      const { object } = event;
      const name = object.kind === 'table' ? object.name : object.table;
      if (tables.some((table) => object.family === table.family && name === table.name)) this.#touched = true;
    }
  }

  #follow(generation: number, byOthers: boolean): void {
    const known = this.#untouched;
    const isNext = known !== undefined && generation === known.until + 1;
    this.#untouched = { since: isNext && !byOthers ? known.since : generation, until: generation };
  }

  #compareGenerations(): void {
    const own = this.#ownGeneration;
    this.#untouched = undefined;
    if (own === undefined) return;
    if (this.#generation() === own) this.#untouched = { since: own, until: own };
    else this.#tell();
  }

  /** Undefined when the kernel cannot be asked: as good as another one. */
  #generation(): number | undefined {
    return attempt(this.#options.generation);
  }

  #tell(): void {
    const { clock, debounceMs, changed } = this.#options;
    const waitMs = Math.max(debounceMs, this.#pace.leftMs(clock.now()));
    this.#timer ??= clock.setTimer(() => {
      this.#timer = undefined;
      this.#pace.passed(clock.now());
      changed();
    }, waitMs);
  }
}

import type { Clock, Timer } from '../../core/index.ts';
import type { TrackingCounters } from '../../netlink/conntrack/index.ts';

/** What is older is of another trouble than the one that is asked about now. */
const EVERY_MS = 60_000;

/** Counters as they were some time ago. */
export interface CounterSample {
  readonly secondsAgo: number;
  readonly counters: TrackingCounters;
}

/** Remembers counters of one to two minutes ago, so that somebody who asks now can tell what has happened since. */
export class CounterSamples {
  readonly #clock: Clock;
  readonly #read: () => TrackingCounters;
  #samples: readonly { readonly at: number; readonly counters: TrackingCounters }[] = [];
  #timer: Timer | undefined;

  constructor(clock: Clock, read: () => TrackingCounters) {
    this.#clock = clock;
    this.#read = read;
  }

  /** Takes one now, and one each minute until `stop`. */
  start(): void {
    this.#samples = [...this.#samples.slice(-1), { at: this.#clock.now(), counters: this.#read() }];
    this.#timer = this.#clock.setTimer(() => this.start(), EVERY_MS);
  }

  stop(): void {
    this.#timer?.cancel();
  }

  /** Null before the first one. */
  get before(): CounterSample | null {
    const [oldest] = this.#samples;
    return oldest ? { secondsAgo: (this.#clock.now() - oldest.at) / 1000, counters: oldest.counters } : null;
  }
}

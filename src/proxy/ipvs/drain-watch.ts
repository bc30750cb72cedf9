import type { Clock, Timer } from '../../core/index.ts';
import type { Draining } from './diff/drain.ts';

/** How often it is looked whether the connections of drained destinations are over. */
const LOOK_INTERVAL_MS = 1000;

/** What a DrainWatch needs. */
export interface DrainWatchOptions {
  readonly clock: Clock;
  readonly draining: Draining;
  /** Removes what has no connections any more. What it throws is told to the clock; the next look comes as usual. */
  readonly look: () => Promise<void>;
}

/** Has what is being drained looked at in intervals, as long as there is any. */
export class DrainWatch {
  readonly #options: DrainWatchOptions;
  #timer: Timer | undefined;
  #looking: Promise<void> | undefined;
  /** Ends the wait of `drained`. */
  #wake: (() => void) | undefined;
  #isClosed = false;

  constructor(options: DrainWatchOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when no look is under way: only then may anything else change the kernel. */
  async idle(): Promise<void> {
    if (this.#looking) await this.#looking;
  }

  /** Resolves when nothing is being drained any more, or after `close`. */
  async drained(): Promise<void> {
    const { clock, draining } = this.#options;
    while (draining.size > 0 && !this.#isClosed) {
      await new Promise<void>((resolve) => {
        const timer = clock.setTimer(resolve, LOOK_INTERVAL_MS);
        this.#wake = () => {
          timer.cancel();
          resolve();
        };
      });
    }
  }

  /** To be called when something may have begun to drain. */
  schedule(): void {
    const { clock, draining, look } = this.#options;
    if (draining.size === 0 || this.#timer || this.#looking || this.#isClosed) return;
    this.#timer = clock.setTimer(() => {
      this.#timer = undefined;
      if (this.#looking) return;
      const looking = look();
      this.#looking = looking
        .catch(() => {})
        .finally(() => {
          this.#looking = undefined;
          this.schedule();
        });
      return looking;
    }, LOOK_INTERVAL_MS);
  }

  /** No look until the next `schedule`. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** No look any more; one that is under way goes on: see `idle`. */
  close(): void {
    this.cancel();
    this.#isClosed = true;
    this.#wake?.();
  }
}

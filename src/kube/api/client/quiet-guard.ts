import type { Clock, Timer } from '../../../core/index.ts';

/**
 * Calls `onQuiet` once when nothing has been heard for the limit. A byte costs one assignment: the timer looks at the
 * time of the last one only when it fires.
 */
export class QuietGuard {
  readonly #clock: Clock;
  readonly #onQuiet: (limitMs: number) => void;
  #limitMs: number;
  #lastHeard: number;
  #timer: Timer;

  constructor(clock: Clock, limitMs: number, onQuiet: (limitMs: number) => void) {
    this.#clock = clock;
    this.#onQuiet = onQuiet;
    this.#limitMs = limitMs;
    this.#lastHeard = clock.now();
    this.#timer = this.#arm();
  }

  heard(): void {
    this.#lastHeard = this.#clock.now();
  }

  setLimit(limitMs: number): void {
    this.#limitMs = limitMs;
    this.#timer.cancel();
    this.#timer = this.#arm();
  }

  stop(): void {
    this.#timer.cancel();
  }

  #arm(): Timer {
    const dueIn = this.#lastHeard + this.#limitMs - this.#clock.now();
    return this.#clock.setTimer(() => this.#look(), Math.max(0, dueIn));
  }

  #look(): void {
    if (this.#clock.now() - this.#lastHeard >= this.#limitMs) this.#onQuiet(this.#limitMs);
    else this.#timer = this.#arm();
  }
}

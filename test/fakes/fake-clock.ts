import type { Clock, Timer } from '../../src/core/index.ts';

interface Pending {
  readonly at: number;
  readonly fn: () => void;
}

/** A clock that stands still until `advance` is called; timers fire in the order of their times. */
export class FakeClock implements Clock {
  #now: number;
  readonly #pending = new Set<Pending>();

  constructor(startMs = 1_000_000) {
    this.#now = startMs;
  }

  now(): number {
    return this.#now;
  }

  setTimer(fn: () => void, ms: number): Timer {
    const pending = { at: this.#now + ms, fn };
    this.#pending.add(pending);
    return { cancel: () => this.#pending.delete(pending) };
  }

  /** Moves time on by `ms`, firing what falls due, and lets promises settle after each timer. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = [...this.#pending].filter((p) => p.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.fn();
    }
    this.#now = end;
    await settle();
  }
}

/** Work that gives the event loop back when it takes long, as on a busy machine, goes on after a turn of it. */
async function settle(): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

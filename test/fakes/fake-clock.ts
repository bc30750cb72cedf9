import type { Clock, Timer } from '../../src/core/index.ts';

interface Pending {
  readonly at: number;
  readonly fn: () => unknown;
}

/**
 * A clock that stands still until `advance` is called; timers fire in the order of their times. Its calendar begins at
 * the same number and may be set back and forth.
 */
export class FakeClock implements Clock {
  #now: number;
  #calendarOffset = 0;
  readonly #failed: ((error: unknown) => void) | undefined;
  readonly #pending = new Set<Pending>();

  /** @param failed told what a timer's function throws or rejects with. @default the test fails */
  constructor(startMs = 1_000_000, failed?: (error: unknown) => void) {
    this.#now = startMs;
    this.#failed = failed;
  }

  now(): number {
    return this.#now;
  }

  wallTime(): number {
    return this.#now + this.#calendarOffset;
  }

  /** Sets the calendar forward, or back with a negative number; the time that passes is not touched. */
  setCalendar(byMs: number): void {
    this.#calendarOffset += byMs;
  }

  /** Time passes within something that does not wait: no timer fires. */
  pass(ms: number): void {
    this.#now += ms;
  }

  setTimer(fn: () => unknown, ms: number): Timer {
    // Node.js 24 warns of these.
    if (!(ms >= 0)) throw new Error(`A timer of ${ms} ms`);
    const pending = { at: this.#now + ms, fn };
    this.#pending.add(pending);
    return { cancel: () => this.#pending.delete(pending) };
  }

  /**
   * Moves time on by `ms`, firing what falls due, and lets promises settle after each timer.
   *
   * @param outside `held`: nothing of the real world, such as inotify, is heard meanwhile. @default heard
   */
  async advance(ms: number, outside: 'heard' | 'held' = 'heard'): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle(outside);
      const next = [...this.#pending].filter((p) => p.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#pending.delete(next);
      this.#now = Math.max(this.#now, next.at);
      this.#call(next.fn);
    }
    this.#now = end;
    await settle(outside);
  }

  #call(fn: () => unknown): void {
    const failed = this.#failed;
    if (!failed) {
      fn();
      return;
    }
    try {
      Promise.resolve(fn()).catch(failed);
    } catch (error) {
      failed(error);
    }
  }
}

/** Turns of the event loop that work may need that gives it back when it takes long, as on a busy machine. */
const TURNS = 4;

async function settle(outside: 'heard' | 'held'): Promise<void> {
  for (let i = 0; i < 10; i++) await Promise.resolve();
  for (let turn = 0; turn < TURNS && outside === 'heard'; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  for (let i = 0; i < 10; i++) await Promise.resolve();
}

import { inBackground } from './background.ts';

/** A pending timer. */
export interface Timer {
  cancel(): void;
}

/**
 * Time as a dependency, so that tests decide when it passes. It has two meanings: how much has passed, which every
 * decision is made by, and what the calendar says, which somebody may set back or forward at any moment.
 */
export interface Clock {
  /**
   * Milliseconds since some moment, the same one for the life of this clock; never goes back. For durations: waits, ages,
   * limits, figures.
   */
  now(): number;
  /**
   * Milliseconds since 1970 by the node's calendar clock. Only for what is printed, or compared with times that others
   * wrote: files, objects of the API.
   */
  wallTime(): number;
  /** Calls `fn` once after `ms` milliseconds, however many. What `fn` throws or rejects with is told, and ends nothing. */
  setTimer(fn: () => unknown, ms: number): Timer;
}

/** setTimeout takes a longer wait for none at all. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

/** The real clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  wallTime: () => Date.now(),
  setTimer(fn, ms) {
    let handle: NodeJS.Timeout;
    const arm = (leftMs: number) => {
      const waitMs = Math.min(leftMs, LONGEST_TIMEOUT_MS);
      handle = setTimeout(() => (leftMs > waitMs ? arm(leftMs - waitMs) : inBackground('timer', fn)), waitMs);
      handle.unref();
    };
    arm(ms);
    return { cancel: () => clearTimeout(handle) };
  },
};

/**
 * Resolves after `ms` milliseconds (0: at once), or when the signal aborts. Never rejects.
 *
 * @param signal undefined: nobody ends the wait
 */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted || ms <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      timer.cancel();
      signal?.removeEventListener('abort', wake);
      resolve();
    };
    const timer = clock.setTimer(wake, ms);
    signal?.addEventListener('abort', wake);
  });
}

/** Seconds that have passed since `performance.now()` was `started`; for figures, not for decisions. */
export function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}

/** A pending timer. */
export interface Timer {
  cancel(): void;
}

/** Time as a dependency, so that tests decide when it passes. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `fn` once after `ms` milliseconds. */
  setTimer(fn: () => void, ms: number): Timer;
}

/** The real clock. Its timers do not keep the process alive. */
export const systemClock: Clock = {
  now: () => Date.now(),
  setTimer(fn, ms) {
    const handle = setTimeout(fn, ms);
    handle.unref();
    return { cancel: () => clearTimeout(handle) };
  },
};

/** Seconds that have passed since `performance.now()` was `started`; for figures, not for decisions. */
export function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}

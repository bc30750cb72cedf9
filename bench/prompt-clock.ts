import { type Clock, systemClock } from '../src/core/index.ts';

/** A clock whose time can be skipped, so that no least interval between two syncs is waited for. */
export interface PromptClock extends Clock {
  skip(ms: number): void;
}

/** The system's, but what is due at once runs as soon as the event loop turns: a timer of 0 ms waits a whole one. */
export function promptClock(): PromptClock {
  let skipped = 0;
  return {
    ...systemClock,
    now: () => systemClock.now() + skipped,
    skip(ms) {
      skipped += ms;
    },
    setTimer(callback, delayMs) {
      if (delayMs > 0) return systemClock.setTimer(callback, delayMs);
      const immediate = setImmediate(callback);
      return { cancel: () => clearImmediate(immediate) };
    },
  };
}

import { type Clock, isForeignLock } from '../../../core/index.ts';

/** The programs have waited 5 s for the lock themselves. */
export const LONGEST_WAIT_FOR_LOCK_MS = 10_000;

/** Resolves after `ms` milliseconds, at once when `signal` aborts. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = () => {
      timer.cancel();
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = clock.setTimer(finish, ms);
    if (signal.aborted) finish();
    else signal.addEventListener('abort', finish);
  });
}

/** Does `work`, again as long as a lock of another process keeps it from being done. Throws what it throws otherwise. */
export async function onceUnlocked(work: () => Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await work();
      return;
    } catch (error) {
      if (!isForeignLock(error)) throw error;
      await sleep(clock, LONGEST_WAIT_FOR_LOCK_MS, signal);
    }
  }
}

import { type Clock, isForeignLock, sleep } from '../../../core/index.ts';

/** The programs have waited 5 s for the lock themselves. */
export const LONGEST_WAIT_FOR_LOCK_MS = 10_000;

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

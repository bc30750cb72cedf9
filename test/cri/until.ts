import { setTimeout as delay } from 'node:timers/promises';
import { patient } from '../lab/patience.ts';

const WAIT_MS = patient(30_000);

/** Tries until it succeeds. @throws with its last error when that takes too long */
export async function until(what: string, attempt: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (Date.now() > deadline) throw new Error(`Waited for "${what}" in vain: ${(error as Error).message}`);
    }
    await delay(20);
  }
}

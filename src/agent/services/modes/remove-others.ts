import { type Clock, type IpFamily, Removals } from '../../../core/index.ts';
import type { ProxyMode, TraceOptions } from '../../../proxy/index.ts';
import type { Logger } from '../../logger.ts';
import { MODES } from './modes.ts';
import { onceUnlocked } from './wait.ts';

/** Which mode's rules are complete, and what removing the others needs. */
export interface RemovalOptions extends TraceOptions {
  /** The mode whose rules are in the kernel. */
  readonly mode: ProxyMode;
  readonly family: IpFamily;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the wait for connections of the mode before, and for a lock. */
  readonly signal: AbortSignal;
}

/**
 * Removes what a proxy left that ran in another mode. To be called when the rules of `mode` stand, so that no moment is
 * without rules: where both are there, a connection meets either, and both lead to the same Services. A lock that another
 * process holds is waited for; any other failure is logged: the rules of the other mode do no harm until Services change.
 * Resolves when nothing is removed any more.
 */
export async function removeOtherModes(options: RemovalOptions): Promise<void> {
  const { mode, family, clock, logger, signal } = options;
  const retiring: Promise<void>[] = [];
  for (const trace of MODES[mode].replaces.flatMap((other) => MODES[other].traces(family, options))) {
    try {
      if (trace.isInUse?.() === false || !(await trace.isUsable())) continue;
      // Connections may take their time; other traces need not wait for them.
      const removals = new Removals({ dryRun: false });
      const removed = onceUnlocked(() => trace.retire?.(signal) ?? trace.clean(removals), clock, signal);
      if (trace.retire) retiring.push(removed.catch((error) => warn(trace.name, error)));
      else await removed;
      const count = removals.all().length;
      if (count > 0)
        logger.info({ place: trace.name, count }, 'Rules of a proxy in another mode are removed; ours stand');
    } catch (error) {
      warn(trace.name, error);
    }
  }
  await Promise.all(retiring);

  function warn(trace: string, error: unknown): void {
    logger.warn({ place: trace, err: error }, 'What a proxy in another mode left could not be removed');
  }
}

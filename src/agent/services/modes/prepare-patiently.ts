import { type Clock, errorText, isForeignLock, sleep } from '../../../core/index.ts';
import type { PreparedMode } from '../../../proxy/index.ts';
import type { Exec } from '../../../sys/index.ts';
import type { Logger } from '../../logger.ts';
import { LONGEST_WAIT_FOR_LOCK_MS } from './wait.ts';

/** How to look for the proxy's way into the kernel. */
export interface PreparationOptions {
  /** One look, with programs that end when nobody waits for them any more (`Mode.prepare`, and whether it suits the node). */
  readonly attempt: (exec: Exec) => Promise<PreparedMode>;
  readonly exec: Exec;
  /** Whether a failure ends it. False where the agent has other work, which is not to end with it. */
  readonly failureIsFatal: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the looking. */
  readonly signal: AbortSignal;
}

const FIRST_RETRY_MS = 1000;
/** For what only people can mend; looking costs a dozen processes, or a trial of the kernel's tables. */
const LONGEST_RETRY_MS = 60_000;

/**
 * Looks for the proxy's way into the kernel until there is one. A lock that another process holds is waited for, however
 * long: a restart would not free it either.
 *
 * @returns undefined when `signal` aborted
 * @throws what `attempt` throws, when that is fatal
 */
export async function preparePatiently(options: PreparationOptions): Promise<PreparedMode | undefined> {
  const { attempt, exec, failureIsFatal, clock, logger, signal } = options;
  let prepared: PreparedMode | undefined;
  // Dataplanes keep the function for their work, which is not cut off.
  const cancellable: Exec = (program, args, given) => exec(program, args, prepared ? given : { ...given, signal });
  let said = '';
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    try {
      const found = await attempt(cancellable);
      // A look that was cut off finds families missing that are there.
      if (signal.aborted) break;
      prepared = found;
      for (const [family, reason] of prepared.unserved) logger.warn({ reason }, `${family} is not served`);
      if (said !== '') logger.info('The proxy can write rules now');
      return prepared;
    } catch (error) {
      if (signal.aborted) break;
      const locked = isForeignLock(error);
      if (!locked && failureIsFatal) throw error;
      retryMs = Math.min(retryMs, locked ? LONGEST_WAIT_FOR_LOCK_MS : LONGEST_RETRY_MS);
      const text = errorText(error);
      const level = text === said ? 'debug' : locked ? 'warn' : 'error';
      logger[level](
        { err: error, retryInMs: retryMs },
        'The proxy cannot write rules; trying again. Rules that are in place stay in force',
      );
      said = text;
      await sleep(clock, retryMs, signal);
      retryMs *= 2;
    }
  }
  return undefined;
}

import type { Clock, IpFamily } from '../../../core/index.ts';
import type { ProxyMode } from '../../../proxy/index.ts';
import type { Logger } from '../../logger.ts';
import { type PlaceOptions, placesOf } from './places.ts';
import { onceUnlocked } from './wait.ts';

/**
 * The modes whose state is in the way of each mode. Modes iptables and ipvs share chains, and rewrite each other's. IPVS comes
 * last: it is not waited for, and would remove the same rules as iptables at the same time.
 */
const OTHERS: Readonly<Record<ProxyMode, readonly ProxyMode[]>> = {
  iptables: ['nftables', 'ipvs'],
  nftables: ['iptables', 'ipvs'],
  ipvs: ['nftables'],
};

/** What is to be removed, and by whose leave. */
export interface RemovalOptions extends PlaceOptions {
  /** The one that stands. */
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
 */
export async function removeOtherModes(options: RemovalOptions): Promise<void> {
  const { mode, family, clock, logger, signal } = options;
  for (const place of OTHERS[mode].flatMap((other) => placesOf(other, family, options))) {
    try {
      if (place.isInUse?.() === false || !(await place.isUsable())) continue;
      // Connections may take their time; other places need not wait for them.
      const removed = onceUnlocked(() => place.retire?.(signal) ?? place.clean(), clock, signal);
      if (place.retire) void removed.catch((error) => report(place.name, error));
      else await removed;
    } catch (error) {
      report(place.name, error);
    }
  }

  function report(place: string, error: unknown): void {
    logger.warn({ place, err: error }, 'What a proxy in another mode left could not be removed');
  }
}

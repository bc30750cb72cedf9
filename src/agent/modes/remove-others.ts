import type { IpFamily } from '../../core/index.ts';
import type { ProxyMode } from '../../proxy/index.ts';
import type { Exec } from '../../sys/index.ts';
import type { Logger } from '../logger.ts';
import { placesOf } from './places.ts';

/** The modes whose state is in the way of each mode. Modes iptables and ipvs share chains, and rewrite each other's. */
const OTHERS: Readonly<Record<ProxyMode, readonly ProxyMode[]>> = {
  iptables: ['nftables', 'ipvs'],
  nftables: ['ipvs', 'iptables'],
  ipvs: ['nftables'],
};

/**
 * Removes what a proxy left that ran in another mode. To be called when the rules of `mode` stand, so that no moment is
 * without rules: where both are there, a connection meets either, and both lead to the same Services. A failure is logged:
 * the rules of the other mode do no harm until Services change.
 */
export async function removeOtherModes(mode: ProxyMode, family: IpFamily, exec: Exec, logger: Logger): Promise<void> {
  for (const place of OTHERS[mode].flatMap((other) => placesOf(other, family, exec))) {
    try {
      if (await place.isUsable()) await place.clean();
    } catch (error) {
      logger.warn({ place: place.name, err: error }, 'What a proxy in another mode left could not be removed');
    }
  }
}

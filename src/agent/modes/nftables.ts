import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import { Nftables, watchNftables } from '../../netlink/index.ts';
import { checkNftables, NftablesDataplane } from '../../proxy/nftables/index.ts';
import type { Logger } from '../logger.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Tries out what the rules need of the kernel, for each family.
 *
 * @param families those the machine has
 * @throws ERR_NFTABLES when none of them can be served
 */
export function prepareNftables(families: readonly IpFamily[], logger: Logger): PreparedMode {
  const open = () => Nftables.open();
  const missing = new Map(families.map((family) => [family, checkNftables(open, family)] as const));
  const usable = families.filter((family) => missing.get(family) === undefined);
  if (usable.length === 0) {
    throw new NodeplaneError('ERR_NFTABLES', `Cannot run in mode nftables: ${missing.get(families[0]!)}`);
  }
  for (const [family, reason] of missing) if (reason !== undefined) logger.warn({ reason }, `${family} is not served`);
  return {
    mode: 'nftables',
    families: usable,
    begin: () => (family, hooks) =>
      new NftablesDataplane({ family, open, watch: watchNftables, onForeignChange: hooks.changedByOthers }),
  };
}

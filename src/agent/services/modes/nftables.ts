import { type IpFamily, NodeplaneError } from '../../../core/index.ts';
import { Nftables, watchNftables } from '../../../netlink/nftables/index.ts';
import { checkNftables, NftablesDataplane } from '../../../proxy/nftables/index.ts';
import type { PreparedMode } from './prepared-mode.ts';

/**
 * Tries out what the rules need of the kernel, for each family.
 *
 * @param families those the machine has
 * @throws ERR_NFTABLES when none of them can be served
 */
export function prepareNftables(families: readonly IpFamily[]): PreparedMode {
  const open = () => Nftables.open();
  const unserved = new Map<IpFamily, string>();
  for (const family of families) {
    const missing = checkNftables(open, family);
    if (missing !== undefined) unserved.set(family, missing);
  }
  const usable = families.filter((family) => !unserved.has(family));
  if (usable.length === 0) {
    throw new NodeplaneError('ERR_NFTABLES', `Cannot run in mode nftables: ${unserved.get(families[0]!)}`);
  }
  return {
    mode: 'nftables',
    families: usable,
    unserved,
    begin: () => (family, hooks) =>
      new NftablesDataplane({ family, open, watch: watchNftables, onForeignChange: hooks.changedByOthers }),
  };
}

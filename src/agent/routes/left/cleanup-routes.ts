import { IP_FAMILIES, type Removals } from '../../../core/index.ts';
import { closing } from '../../../netlink/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import { NetlinkRouteKernel, RULES_TABLE, removeRoutes, removeRules } from '../../../routes/index.ts';

/**
 * Removes the routes to other nodes' pods that nodeplane made, and the rules beside them. Pods on other nodes cannot be reached
 * from here then, until somebody else has made routes.
 *
 * @param removals hears of each thing, and says whether to do it. @default everything
 * @returns one sentence for each family, and one for the rules
 * @throws rejects with ERR_CLEANUP, KernelError, NftCommitError
 */
export async function cleanupRoutes(removals?: Removals): Promise<string[]> {
  const lines: string[] = [];
  for (const family of IP_FAMILIES) {
    const removed = await closing(NetlinkRouteKernel.open(family), (kernel) => removeRoutes(kernel, family, removals));
    lines.push(`routes to other nodes (${family}): ${removed === 0 ? 'clean' : `${removed} objects removed`}`);
  }
  return [...lines, cleanupRules(removals)];
}

function cleanupRules(removals: Removals | undefined): string {
  const place = `nftables table ${RULES_TABLE.family} ${RULES_TABLE.name}`;
  return `${place}: ${closing(Nftables.open(), (nft) => removeRules(nft, removals)) ? 'removed' : 'clean'}`;
}

import type { IpFamily } from '../../core/index.ts';
import { type NftRuleset, nftFamily } from '../../netlink/nftables/index.ts';
import { KUBE_PROXY_TABLE, TABLE_NAME } from './compile/names.ts';

/**
 * Removes our table and a kube-proxy's of one family, in one transaction.
 *
 * @returns the names of the tables that were there
 * @throws NftCommitError
 */
export function cleanupNftables(nft: NftRuleset, family: IpFamily, table: string = TABLE_NAME): string[] {
  const found = nft
    .listTables(nftFamily(family))
    .map(({ name }) => name)
    .filter((name) => name === table || name === KUBE_PROXY_TABLE);
  // Somebody else may remove one meanwhile.
  if (found.length > 0) {
    nft.commit(
      found.map(
        (name) => ({ operation: 'destroy', object: { kind: 'table', family: nftFamily(family), name } }) as const,
      ),
    );
  }
  return found;
}

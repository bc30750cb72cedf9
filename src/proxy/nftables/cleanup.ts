import type { IpFamily } from '../../core/index.ts';
import { type NftRuleset, nftFamily } from '../../netlink/nftables/index.ts';
import { KUBE_PROXY_TABLE, TABLE_NAME } from './compile/names.ts';

const BOTH = [TABLE_NAME, KUBE_PROXY_TABLE];

/**
 * Removes tables of one family, in one transaction.
 *
 * @param tables their names. @default our table and a kube-proxy's
 * @returns the names of the tables that were there
 * @throws NftCommitError
 */
export function cleanupNftables(nft: NftRuleset, family: IpFamily, tables: readonly string[] = BOTH): string[] {
  const found = nft
    .listTables(nftFamily(family))
    .map(({ name }) => name)
    .filter((name) => tables.includes(name));
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

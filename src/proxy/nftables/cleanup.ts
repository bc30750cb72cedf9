import type { IpFamily, Removals } from '../../core/index.ts';
import { type NftRuleset, nftFamily } from '../../netlink/nftables/index.ts';
import { KUBE_PROXY_TABLE, TABLE_NAME } from './compile/names.ts';

const BOTH = [TABLE_NAME, KUBE_PROXY_TABLE];

/**
 * Removes tables of one family, in one transaction.
 *
 * @param tables their names. @default our table and a kube-proxy's
 * @param removals hears of them, and says whether to do it. @default yes
 * @returns the names of the tables that were there
 * @throws NftCommitError
 */
export function cleanupNftables(
  nft: NftRuleset,
  family: IpFamily,
  tables: readonly string[] = BOTH,
  removals?: Removals,
): string[] {
  const found = nft
    .listTables(nftFamily(family))
    .map(({ name }) => name)
    .filter((name) => tables.includes(name));
  const noted = found.map((name) => ({
    object: `nftables, table ${nftFamily(family)} ${name}`,
    why: name === KUBE_PROXY_TABLE ? 'kube-proxy’s table' : 'nodeplane’s table',
  }));
  if (removals?.note(...noted) === false) return found;
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

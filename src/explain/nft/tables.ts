import type { NftReader } from '../../netlink/nftables/index.ts';

/** How the names of all tables begin that this program writes. */
const OWN_TABLES = 'nodeplane';

/** Whether this program writes the table, in whatever mode. */
export function isOwnTable(table: string): boolean {
  return table.startsWith(OWN_TABLES);
}

/** Those of base chains that packets meet: tables that sleep (`flags dormant`) have theirs hooked in nowhere. */
export function hookedIn<Chain extends { readonly family: string; readonly table: string }>(
  reader: Pick<NftReader, 'listTables'>,
  chains: readonly Chain[],
): readonly Chain[] {
  if (chains.length === 0) return chains;
  const asleep = reader.listTables().filter(({ dormant }) => dormant);
  return chains.filter(({ family, table }) => !asleep.some((one) => one.family === family && one.name === table));
}

import type { NftRuleset } from '../../netlink/nftables/index.ts';
import type { TableLayout } from '../../nft/index.ts';
import type { AttachmentFeature } from './feature.ts';
import { hasTable } from './tables/pod-ruleset.ts';

/**
 * Removes all that features have in nftables, for any network: for the uninstallation, when no pod is left.
 *
 * @param layouts the tables of all features
 * @returns a sentence for each thing removed
 */
export function removeRules(
  ruleset: NftRuleset,
  layouts: readonly TableLayout[],
  features: readonly AttachmentFeature[],
): string[] {
  const done: string[] = [];
  for (const { table } of layouts) {
    if (!hasTable(ruleset, table)) continue;
    ruleset.commit([{ operation: 'destroy', object: table }]);
    done.push(`nftables table "${table.family} ${table.name}": removed`);
  }
  return [...done, ...features.flatMap((feature) => feature.uninstall?.(ruleset) ?? [])];
}

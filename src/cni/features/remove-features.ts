import type { NftRuleset } from '../../netlink/nftables/index.ts';
import { readForward } from './firewall.ts';
import { removalChanges } from './tables/forward-rules.ts';
import { FRAME_TABLE } from './tables/frame-table.ts';
import { hasTable } from './tables/pod-ruleset.ts';
import { IP_FAMILIES, POD_TABLE } from './tables/pod-table.ts';

/**
 * Removes all that the features of any network have in nftables: for the uninstallation, when no pod is left.
 *
 * @returns a sentence for each thing removed
 */
export function removeFeatures(ruleset: NftRuleset): string[] {
  const done: string[] = [];
  for (const table of [POD_TABLE, FRAME_TABLE]) {
    if (!hasTable(ruleset, table)) continue;
    ruleset.commit([{ operation: 'destroy', object: table }]);
    done.push(`nftables table "${table.family} ${table.name}": removed`);
  }
  for (const family of IP_FAMILIES) {
    const changes = removalChanges(family, readForward(ruleset, family));
    if (changes.length === 0) continue;
    ruleset.commit(changes);
    done.push(`Rules in chain FORWARD of the ${family} filter table: removed`);
  }
  return done;
}

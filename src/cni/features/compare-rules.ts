import { type Drift, inSlices } from '../../core/index.ts';
import type { NftRuleset } from '../../netlink/nftables/index.ts';
import { changesDrift, trialOf } from '../../nft/drift/index.ts';
import type { TableLayout } from '../../nft/index.ts';
import type { DesiredRules } from './feature.ts';
import { reassertRules } from './reassert.ts';

/** What `reassertRules`, with the same arguments, would bring back, and what it cannot; nothing is changed. Rejects as it throws. */
export async function compareRules(
  ruleset: NftRuleset,
  layouts: readonly TableLayout[],
  desired: DesiredRules,
  links?: () => ReadonlySet<string>,
): Promise<readonly Drift[]> {
  const trial = trialOf(ruleset);
  const { conflicts } = reassertRules(trial.ruleset, layouts, desired, links);
  const drifts = await inSlices(changesDrift(ruleset, trial.changes));
  return [...drifts, ...conflicts.map((object): Drift => ({ object, difference: 'changed' }))];
}

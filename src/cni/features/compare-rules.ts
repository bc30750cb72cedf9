import { type Drift, inSlices } from '../../core/index.ts';
import type { NftRuleset } from '../../netlink/nftables/index.ts';
import { changesDrift, trialOf } from '../../nft/drift/index.ts';
import type { TableLayout } from '../../nft/index.ts';
import type { DesiredRules } from './feature.ts';
import { reassertRules } from './reassert.ts';
import { linkOf } from './tables/owner-comment.ts';
import { portElementText } from './tables/pod-elements.ts';
import { listPodElements } from './tables/pod-ruleset.ts';
import { podSets } from './tables/pod-table.ts';

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
  return [
    ...drifts,
    ...conflicts.map((object): Drift => ({ object, difference: 'changed' })),
    ...foreignPorts(ruleset).map((object): Drift => ({ object, difference: 'unexpected' })),
  ];
}

/** Ports in our maps that lead somewhere and that no ADD has put there: each of ours names its pod. */
function foreignPorts(ruleset: NftRuleset): string[] {
  return listPodElements(ruleset, podSets(['ports', 'address-ports'])).flatMap((set) =>
    set.elements
      .filter(({ comment }) => linkOf(comment) === undefined)
      .map((element) => `element ${portElementText(set, element)} of set ${set.family} ${set.table} ${set.set}`),
  );
}

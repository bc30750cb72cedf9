import type { CommitReport, NftChange } from './object/model.ts';
import type { NftRuleset } from './ruleset.ts';

/** Of a commit that had nothing to do. */
export const NOTHING_COMMITTED: CommitReport = { generation: undefined, messages: 0, bytes: 0, kernelSeconds: 0 };

/**
 * A ruleset that reads as another does, and hands what is committed to it to somebody else.
 *
 * @param commit in place of the ruleset's own
 */
export function committedElsewhere(
  ruleset: NftRuleset,
  commit: (changes: readonly NftChange[]) => CommitReport,
): NftRuleset {
  const instead: Partial<NftRuleset> = {
    commit: (changes) => commit(changes),
    commitAsync: async (changes) => commit(changes),
  };
  return new Proxy(ruleset, {
    get(target, name) {
      const own = instead[name as keyof NftRuleset];
      if (own) return own;
      const method = target[name as keyof NftRuleset];
      return typeof method === 'function' ? method.bind(target) : method;
    },
  });
}

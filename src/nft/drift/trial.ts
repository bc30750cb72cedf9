import type { CommitReport, NftChange, NftRuleset } from '../../netlink/nftables/index.ts';

/** A repair that is only tried. */
export interface Trial {
  /** Reads as the ruleset does; what is committed to it is kept, and not made. */
  readonly ruleset: NftRuleset;
  /** All that was committed. */
  readonly changes: readonly NftChange[];
}

const NOTHING_DONE: CommitReport = { generation: undefined, messages: 0, bytes: 0, encodeSeconds: 0, kernelSeconds: 0 };

/** Lets a repair run against the kernel without changing it: what it would do is what differs. */
export function trialOf(ruleset: NftRuleset): Trial {
  const changes: NftChange[] = [];
  const commit = (made: readonly NftChange[]): CommitReport => {
    for (const change of made) changes.push(change);
    return NOTHING_DONE;
  };
  const instead: Partial<NftRuleset> = { commit, commitAsync: async (made) => commit(made) };
  const trial = new Proxy(ruleset, {
    get(target, name) {
      const own = instead[name as keyof NftRuleset];
      if (own) return own;
      const method = target[name as keyof NftRuleset];
      return typeof method === 'function' ? method.bind(target) : method;
    },
  });
  return { ruleset: trial, changes };
}

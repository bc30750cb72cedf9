import {
  committedElsewhere,
  type NftChange,
  type NftRuleset,
  NOTHING_COMMITTED,
} from '../../netlink/nftables/index.ts';

/** A repair that is only tried. */
export interface Trial {
  /** Reads as the ruleset does; what is committed to it is kept, and not made. */
  readonly ruleset: NftRuleset;
  /** All that was committed. */
  readonly changes: readonly NftChange[];
}

/** Lets a repair run against the kernel without changing it: what it would do is what differs. */
export function trialOf(ruleset: NftRuleset): Trial {
  const changes: NftChange[] = [];
  const trial = committedElsewhere(ruleset, (made) => {
    for (const change of made) changes.push(change);
    return NOTHING_COMMITTED;
  });
  return { ruleset: trial, changes };
}

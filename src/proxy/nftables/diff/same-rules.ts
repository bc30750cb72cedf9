import { sameBytes } from '../../../core/index.ts';
import { type NftElement, type NftRule, sameExpressions } from '../../../netlink/nftables/index.ts';
import type { RuleBody } from '../compile/rule.ts';

/** Whether the rules of a chain, as read back, are these. */
export function sameRules(present: readonly NftRule[], wanted: readonly RuleBody[]): boolean {
  return (
    present.length === wanted.length &&
    present.every(({ expressions, comment }, index) => {
      const rule = wanted[index]!;
      return comment === rule.comment && sameExpressions(expressions, rule.expressions);
    })
  );
}

/** Whether an element, as read back, is this one; both have the same key. */
export function sameElement(present: NftElement, wanted: NftElement): boolean {
  return (
    sameBytes(present.data, wanted.data) &&
    sameBytes(present.keyEnd, wanted.keyEnd) &&
    present.verdict?.kind === wanted.verdict?.kind &&
    chainOf(present) === chainOf(wanted) &&
    present.comment === wanted.comment
  );
}

function chainOf({ verdict }: NftElement): string | undefined {
  return verdict && 'chain' in verdict ? verdict.chain : undefined;
}

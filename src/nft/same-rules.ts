import { type Expression, sameExpressions } from '../netlink/nftables/index.ts';

/** What a rule does, and its comment. */
interface RuleBody {
  readonly expressions: readonly Expression[];
  readonly comment?: string | undefined;
}

/** Whether the rules of a chain, as read back, are these, in this order. */
export function sameRuleBodies(present: readonly RuleBody[], wanted: readonly RuleBody[]): boolean {
  return (
    present.length === wanted.length &&
    present.every(({ expressions, comment }, index) => {
      const rule = wanted[index]!;
      return comment === rule.comment && sameExpressions(expressions, rule.expressions);
    })
  );
}

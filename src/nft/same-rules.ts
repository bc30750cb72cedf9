import { type BaseChain, type Expression, sameExpressions } from '../netlink/nftables/index.ts';

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

/** Whether a chain is where it is to be: at the same hook with the same priority and policy, or at none. */
export function sameBase(present: BaseChain | undefined, wanted: BaseChain | undefined): boolean {
  if (present === undefined || wanted === undefined) return present === wanted;
  return (
    present.type === wanted.type &&
    present.hook === wanted.hook &&
    present.priority === wanted.priority &&
    (present.policy ?? 'accept') === (wanted.policy ?? 'accept')
  );
}

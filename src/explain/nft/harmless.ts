import type { ChainRef, Expression, NftReader, NftRule } from '../../netlink/nftables/index.ts';

/**
 * Expressions that look, count and tell: nft_*_eval in net/netfilter. What a limit or a match of iptables says is for
 * the rest of its rule.
 */
const LOOKING: ReadonlySet<Expression['kind']> = new Set<Expression['kind']>([
  ...(['payload', 'meta', 'ct', 'fib', 'rt', 'immediate', 'numgen', 'jhash'] as const),
  ...(['bitwise', 'byteorder', 'shift', 'cmp', 'range', 'match', 'limit', 'counter', 'log'] as const),
]);

/**
 * Whether the rules of a base chain let all through as it is, whatever meets them: none, nor any of the chains that it leads to, drops,
 * alters or sends elsewhere. That holds of what programs of ebtables leave: jumps into chains without rules, and rules that accept.
 *
 * @throws what reading nf_tables throws
 */
export function rulesAreHarmless(
  nft: Pick<NftReader, 'listRules'>,
  chain: ChainRef,
  seen: Set<string> = new Set(),
): boolean {
  if (seen.has(chain.name)) return true;
  seen.add(chain.name);
  const leadsOnHarmlessly = ({ expressions }: NftRule) =>
    expressions.every((expression) => {
      if (expression.kind === 'lookup') return expression.to !== 'verdict';
      if (expression.kind !== 'verdict') return LOOKING.has(expression.kind);
      const { verdict } = expression;
      return 'chain' in verdict
        ? rulesAreHarmless(nft, { ...chain, name: verdict.chain }, seen)
        : verdict.kind !== 'drop';
    });
  return nft.listRules(chain).every(leadsOnHarmlessly);
}

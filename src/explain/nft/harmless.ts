import type { ChainRef, Expression, NftReader, NftRule } from '../../netlink/nftables/index.ts';

/** Expressions that look, count and tell: nft_*_eval in net/netfilter. What a limit or a match of iptables says is for the rest of its rule. */
const LOOKING: ReadonlySet<Expression['kind']> = new Set<Expression['kind']>([
  ...(['payload', 'meta', 'ct', 'fib', 'rt', 'immediate', 'numgen', 'jhash'] as const),
  ...(['bitwise', 'byteorder', 'shift', 'cmp', 'range', 'match', 'limit', 'counter', 'log'] as const),
]);

/**
 * Whether a base chain lets all through as it is, whatever meets it: no rule of it, nor of the chains that it leads to, drops, alters or
 * sends elsewhere. That holds of what programs of ebtables leave: jumps into chains without rules, and rules that accept.
 *
 * @throws what reading nf_tables throws
 */
export function isHarmless(nft: Pick<NftReader, 'getChain' | 'listRules'>, base: ChainRef): boolean {
  return nft.getChain(base)?.base?.policy !== 'drop' && rulesAreHarmless(nft, base, new Set());
}

function rulesAreHarmless(nft: Pick<NftReader, 'listRules'>, chain: ChainRef, seen: Set<string>): boolean {
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

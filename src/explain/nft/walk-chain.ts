import type { ChainRef, NftRule } from '../../netlink/nftables/index.ts';
import { evaluateRule, type Situation } from './evaluate-rule.ts';
import type { Outcome } from './outcome.ts';
import type { BaseChainOf, Hook } from './surroundings.ts';

/** One rule that matched, or the policy at the end of a base chain. */
export interface Step {
  readonly hook: Hook;
  readonly chain: ChainRef;
  /** Undefined for the policy. */
  readonly rule: NftRule | undefined;
  readonly verdict: string;
}

/** What a base chain does with a packet. `accept` goes on with the next base chain. */
export type ChainResult =
  | { readonly kind: 'accept' | 'drop' }
  | { readonly kind: 'reject'; readonly how: string }
  | { readonly kind: 'cannot tell'; readonly about: string; readonly chain: ChainRef; readonly rule: NftRule };

/** NFT_JUMP_STACK_SIZE, <net/netfilter/nf_tables.h>. */
const MOST_JUMPS = 16;

/** A chain that is being walked, and the next of its rules. */
interface Frame {
  readonly chain: ChainRef;
  readonly rules: readonly NftRule[];
  next: number;
}

/**
 * Walks a base chain and the chains it jumps to, as nft_do_chain (net/netfilter/nf_tables_core.c).
 *
 * @param steps gets each rule that matched, in that order, and the policy if it came to that
 */
export function walkChain(base: BaseChainOf, hook: Hook, situation: Situation, steps: Step[]): ChainResult {
  const enter = (chain: ChainRef): Frame => ({ chain, rules: situation.rules.rulesOf(chain), next: 0 });
  const callers: Frame[] = [];
  let frame = enter(base);
  for (;;) {
    const rule = frame.rules[frame.next++];
    if (!rule) {
      const caller = callers.pop();
      if (!caller) break;
      frame = caller;
      continue;
    }
    const outcome = evaluateRule(rule, situation);
    if (outcome.kind === 'no match') continue;
    steps.push({ hook, chain: frame.chain, rule, verdict: verdictText(outcome) });
    switch (outcome.kind) {
      case 'continue':
        break;
      case 'accept':
      case 'drop':
        return { kind: outcome.kind };
      case 'reject':
        return outcome;
      case 'cannot tell':
        return { ...outcome, chain: frame.chain, rule };
      case 'return':
        frame.next = frame.rules.length;
        break;
      case 'jump':
      case 'goto':
        // The kernel accepts no rules that could jump deeper; a fake might.
        if (callers.length >= MOST_JUMPS) return { kind: 'drop' };
        if (outcome.kind === 'jump') callers.push(frame);
        frame = enter({ ...frame.chain, name: outcome.chain });
        break;
    }
  }
  const policy = base.base.policy ?? 'accept';
  steps.push({ hook, chain: base, rule: undefined, verdict: policy });
  return { kind: policy };
}

function verdictText(outcome: Exclude<Outcome, { readonly kind: 'no match' }>): string {
  return outcome.kind === 'jump' || outcome.kind === 'goto' ? `${outcome.kind} ${outcome.chain}` : outcome.kind;
}

import type { Outcome } from './outcome.ts';
import type { StationResult, Step } from './source.ts';

/** The chains of a table; R is what a rule is to those who have it. */
export interface Chains<R> {
  rulesOf(chain: string): readonly R[];
  /** @param isDrawn its draw was made, see `draw` */
  evaluate(rule: R, chain: string, isDrawn: boolean): Outcome;
  /** Draws among rules in a row, from `at` on: see `Draws`. @default each rule draws for itself */
  draw?(rules: readonly R[], at: number): { readonly passed: number; readonly isTaken: boolean } | undefined;
  /** A rule that matched; undefined for the policy. */
  step(chain: string, rule: R | undefined, verdict: string): Step;
  /** Ways that chance has parted are at the same place again. @default they go on as ways of their own */
  meet?(place: () => string): void;
  /** What jumps deeper is dropped. The kernel takes no such rules; a fake might. @default as deep as there are chains */
  readonly mostJumps?: number;
}

/** A chain that is being walked, and the next of its rules. */
interface Frame<R> {
  readonly chain: string;
  readonly rules: readonly R[];
  next: number;
}

/**
 * Walks a base chain and the chains it jumps to, as nft_do_chain (net/netfilter/nf_tables_core.c) and ipt_do_table
 * (net/ipv4/netfilter/ip_tables.c) do.
 *
 * @param steps gets each rule that matched, in that order, and the policy if it came to that
 */
export function walkChain<R>(base: string, policy: 'accept' | 'drop', chains: Chains<R>, steps: Step[]): StationResult {
  const enter = (chain: string): Frame<R> => ({ chain, rules: chains.rulesOf(chain), next: 0 });
  const callers: Frame<R>[] = [];
  let frame = enter(base);
  const place = () => [...callers, frame].map(({ chain, next }) => `${chain} ${next}`).join();
  for (;;) {
    chains.meet?.(place);
    const drawn = chains.draw?.(frame.rules, frame.next);
    frame.next += drawn?.passed ?? 0;
    if (drawn?.isTaken === false) continue;
    const rule = frame.rules[frame.next++];
    if (rule === undefined) {
      const caller = callers.pop();
      if (!caller) break;
      frame = caller;
      continue;
    }
    const outcome = chains.evaluate(rule, frame.chain, drawn !== undefined);
    if (outcome.kind === 'no match') continue;
    const step = chains.step(frame.chain, rule, verdictText(outcome));
    steps.push(step);
    switch (outcome.kind) {
      case 'continue':
        break;
      case 'accept':
        chains.meet?.(() => 'accepted');
        return { kind: 'accept' };
      case 'drop':
        return { kind: outcome.kind };
      case 'reject':
        return outcome;
      case 'cannot tell':
        return { ...outcome, at: step };
      case 'return':
        frame.next = frame.rules.length;
        break;
      case 'jump':
      case 'goto':
        if (callers.length >= (chains.mostJumps ?? Number.POSITIVE_INFINITY)) return { kind: 'drop' };
        if (outcome.kind === 'jump') callers.push(frame);
        frame = enter(outcome.chain);
        break;
    }
  }
  steps.push(chains.step(base, undefined, policy));
  return { kind: policy };
}

function verdictText(outcome: Exclude<Outcome, { readonly kind: 'no match' }>): string {
  return outcome.kind === 'jump' || outcome.kind === 'goto' ? `${outcome.kind} ${outcome.chain}` : outcome.kind;
}

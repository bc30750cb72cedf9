import type { Drift, Steps } from '../../core/index.ts';
import { type ChainSet, chainDrift, jumpDrift, TABLES } from '../rules/index.ts';
import { jumpsOf, type KernelState, staleChains } from './kernel-state.ts';

/** Says where the kernel differs from what was committed. Rules are compared as text: we write what iptables-save prints. */
export function* findDrift(committed: ChainSet, kernel: KernelState): Steps<Drift[]> {
  const drift: Drift[] = [];
  for (const table of TABLES) {
    const saved = kernel[table];
    drift.push(...jumpDrift(table, jumpsOf(table), saved));
    for (const [name, chain] of committed[table]) {
      yield;
      const found = chainDrift(table, name, chain.rules, saved.get(name)?.rules);
      if (found) drift.push(found);
    }
    for (const name of staleChains(table, saved, committed[table])) {
      yield;
      const found = chainDrift(table, name, undefined, saved.get(name)?.rules);
      if (found) drift.push(found);
    }
  }
  return drift;
}

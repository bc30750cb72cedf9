import type { Drift } from '../index.ts';
import { type ChainSet, sameRules, TABLES } from '../rules/index.ts';
import { type KernelState, missingJumps, staleChains } from './kernel-state.ts';

/** Says where the kernel differs from what was committed. Rules are compared as text: we write what iptables-save prints. */
export function findDrift(committed: ChainSet, kernel: KernelState): Drift[] {
  const drift: Drift[] = [];
  for (const table of TABLES) {
    const saved = kernel[table];
    for (const { chain, to } of missingJumps(table, saved)) {
      drift.push({ object: `jump ${table} ${chain} -> ${to}`, difference: 'missing' });
    }
    for (const [name, chain] of committed[table]) {
      const present = saved.get(name);
      if (!present) drift.push({ object: `${table} chain ${name}`, difference: 'missing' });
      else if (!sameRules(present.rules, chain.rules)) {
        drift.push({ object: `${table} chain ${name}`, difference: 'changed' });
      }
    }
    for (const name of staleChains(table, saved, committed[table])) {
      drift.push({ object: `${table} chain ${name}`, difference: 'unexpected' });
    }
  }
  return drift;
}

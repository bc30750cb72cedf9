import type { Steps } from '../../core/index.ts';
import {
  type ChainEdits,
  type ChainSet,
  diffChains,
  missingJumps,
  surplusJumps,
  TABLES,
  type Table,
  type TableRestore,
} from '../rules/index.ts';
import { heldChains, jumpsOf, type KernelState, staleChains } from './kernel-state.ts';

/** What one table of ours gets in a restore. */
export type TableChanges = TableRestore & { readonly table: Table };

// Table filter comes first in both: what must be refused is refused before anything new is let in.

/** An incremental change: from what was committed, by what the layout changed. */
export function* planChanges(committed: ChainSet, edits: ChainEdits): Steps<TableChanges[]> {
  const changes: TableChanges[] = [];
  for (const table of TABLES) {
    changes.push({ table, ...(yield* diffChains(committed[table], edits[table])), insert: [], withdraw: [] });
  }
  return changes;
}

/**
 * From whatever the kernel holds to `wanted`. Chains that are right already are left alone; a kube-proxy's entry chains
 * are rewritten and its endpoint chains deleted in the same transaction, so that no packet meets a half-made state.
 */
export function* planTakeover(wanted: ChainSet, kernel: KernelState): Steps<TableChanges[]> {
  const changes: TableChanges[] = [];
  for (const table of TABLES) {
    const saved = kernel[table];
    const held = heldChains(table, saved);
    yield;
    const edits: ChainEdits[Table] = new Map(wanted[table]);
    yield;
    for (const name of staleChains(table, saved, wanted[table])) {
      // A chain somebody else's rule leads to cannot be deleted; empty, it does no harm.
      edits.set(name, held.has(name) ? { rules: [], owner: 'a chain that is no longer used' } : undefined);
    }
    const diff = yield* diffChains(saved, edits);
    const jumps = jumpsOf(table);
    changes.push({ table, ...diff, insert: missingJumps(jumps, saved), withdraw: surplusJumps(jumps, saved) });
  }
  return changes;
}

import type { Removals } from '../../core/index.ts';
import { type IptablesTool, removalsOf, type SavedTable, TABLES, type TableRestore } from '../rules/index.ts';
import { foreignRules, heldChains, isJump, isProxyChain } from './kernel-state.ts';
import { CANARY_CHAIN } from './names.ts';

/**
 * Removes the jumps and all chains that are ours or a kube-proxy's, in one restore. The kubelet's chains stay. A chain
 * that somebody else's rule leads to is emptied and stays.
 *
 * @param noted says what goes, and whether to do it. @default everything
 * @throws ERR_IPTABLES
 */
export async function cleanupIptables(
  tool: IptablesTool,
  noted?: { readonly place: string; readonly removals: Removals },
): Promise<void> {
  const tables = planCleanup(await tool.saveAll());
  if (tables.length === 0 || noted?.removals.note(...removalsOf(noted.place, tables)) === false) return;
  await tool.restore(tables);
}

/** What to take away, given all tables of a family; tables without anything of ours are left out. */
function planCleanup(saved: ReadonlyMap<string, SavedTable>): TableRestore[] {
  const tables: TableRestore[] = [];
  const owner = 'the clean-up';
  for (const table of TABLES) {
    const chains = saved.get(table);
    if (!chains) continue;
    const held = heldChains(table, chains);
    const ours = [...chains.keys()].filter((name) => isProxyChain(table, name) || name === CANARY_CHAIN);
    const write = new Map(ours.filter((name) => held.has(name)).map((name) => [name, { rules: [], owner }]));
    const remove = ours.filter((name) => !held.has(name));
    const withdraw = foreignRules(table, chains).filter((rule) => isJump(table, rule));
    if (ours.length > 0 || withdraw.length > 0) tables.push({ table, write, remove, insert: [], withdraw });
  }
  if (saved.get('mangle')?.has(CANARY_CHAIN)) {
    tables.push({ table: 'mangle', write: new Map(), remove: [CANARY_CHAIN], insert: [], withdraw: [] });
  }
  return tables;
}

import { yielder } from '../../core/index.ts';
import {
  type ChainSet,
  type ForeignRule,
  type IptablesTool,
  isGeneratedChain,
  type SavedTable,
  type Table,
  targetOf,
} from '../rules/index.ts';
import { JUMPS, type Jump } from './fixed-chains.ts';
import { ENTRY_CHAINS } from './names.ts';

/** What the kernel holds in the tables we share with others. */
export type KernelState = Readonly<Record<Table, SavedTable>>;

/**
 * Starting a program takes a large process milliseconds: each is started in a turn of the event loop of its own.
 *
 * @param known what the kernel probably holds: for what is equal no memory is needed. @default nothing
 */
export async function readKernelState(tool: IptablesTool, known?: ChainSet): Promise<KernelState> {
  const inNextTurn = async (table: Table) => {
    await yielder(0)();
    return tool.save(table, known?.[table]);
  };
  const [filter, nat] = await Promise.all([inNextTurn('filter'), inNextTurn('nat')]);
  return { filter, nat };
}

/** The jumps of one table, in the order in which missing ones are to be inserted. */
export function jumpsOf(table: Table): Jump[] {
  return JUMPS.filter((jump) => jump.table === table);
}

/**
 * Chains made for Services, by us or a kube-proxy, that are not among `wanted`. Those that are empty and only there
 * because somebody else's rule leads to them do not count.
 */
export function staleChains(table: Table, saved: SavedTable, wanted: ChainSet[Table]): string[] {
  const held = heldChains(table, saved);
  return [...saved]
    .filter(([name]) => isGeneratedChain(name) && !wanted.has(name))
    .filter(([name, { rules }]) => rules.length > 0 || !held.has(name))
    .map(([name]) => name);
}

/** Rules of chains that are neither ours nor a kube-proxy's. */
export function foreignRules(table: Table, saved: SavedTable): ForeignRule[] {
  const rules: ForeignRule[] = [];
  for (const [chain, { rules: texts }] of saved) {
    if (isProxyChain(table, chain)) continue;
    for (const rule of texts) rules.push({ chain, rule });
  }
  return rules;
}

/** The chains that foreign rules other than our jumps lead to: the kernel refuses to delete them. */
export function heldChains(table: Table, saved: SavedTable): ReadonlySet<string> {
  const held = new Set<string>();
  for (const foreign of foreignRules(table, saved)) {
    const target = targetOf(foreign.rule);
    if (target && !isJump(table, foreign)) held.add(target);
  }
  return held;
}

/** Whether a rule in a chain of others is one of our jumps. */
export function isJump(table: Table, { chain, rule }: ForeignRule): boolean {
  return JUMPS.some((jump) => jump.table === table && jump.chain === chain && jump.rule === rule);
}

/** Whether a chain is ours or a kube-proxy's. */
export function isProxyChain(table: Table, name: string): boolean {
  return isGeneratedChain(name) || (ENTRY_CHAINS[table] as readonly string[]).includes(name);
}

import { NodeplaneError } from '../../core/index.ts';
import { bisect, type LeftOut, type LeftOutPort } from '../index.ts';
import { type IptablesTool, TABLES, type Table } from '../rules/index.ts';
import type { CompiledPort } from './compile.ts';
import { PROBE_CHAIN, TREE_TABLE } from './names.ts';

// Which Service port is to blame when iptables-restore fails: one bad Service must not keep the others from being
// programmed.

/** Service ports by key. */
export type CompiledPorts = ReadonlyMap<string, CompiledPort>;

/** The ports a failed restore complains about by name of a line, and what it says; none when the line is nobody's. */
export function refusedByName(error: unknown, ports: CompiledPorts): Map<string, LeftOutPort> {
  const refused = new Map<string, LeftOutPort>();
  if (!isRefusal(error)) return refused;
  const { chain, rule } = error.facts;
  if (typeof chain !== 'string') return refused;
  // A rule in a tree belongs to who claimed it; several may want the same one.
  const text = String(rule).replace(`-A ${chain} `, '');
  for (const [key, { name, chains, claims }] of ports) {
    if (chains.has(chain) || claims.some((claim) => claim.rule === text)) {
      refused.set(key, { key, name, reason: error.message });
    }
  }
  return refused;
}

/**
 * Finds the ports whose rules are refused by trying them out, for when the error names no rule. The rules are written to a
 * chain that no packet enters, so nothing is without its rules meanwhile.
 *
 * @param ports those that were in the restore; of these, the `suspects` are tried
 * @param before what was left out until now, by key
 * @returns the ports to leave out, by key; see `bisect`
 * @throws ERR_IPTABLES when iptables does not work at all (its lock is held, say)
 */
export async function refusedByTrial(
  tool: IptablesTool,
  ports: CompiledPorts,
  suspects: readonly string[],
  before: LeftOut,
): Promise<LeftOut> {
  const get = (key: string) => ports.get(key)!;
  try {
    return await bisect(
      suspects.filter((key) => ports.has(key)),
      before,
      (key) => get(key).name,
      (group) => tryOut(tool, group.map(get)),
    );
  } finally {
    const remove = [PROBE_CHAIN];
    await tool.restore(TABLES.map((table) => ({ ...probeOf(table, []), write: new Map(), remove })));
  }
}

/** What is said against these ports' rules; undefined when they are accepted. */
async function tryOut(tool: IptablesTool, ports: readonly CompiledPort[]): Promise<string | undefined> {
  const rules: Record<Table, string[]> = { filter: [], nat: [] };
  for (const { chains, claims } of ports) {
    for (const chain of chains.values()) for (const rule of chain.rules) rules.nat.push(rule);
    for (const claim of claims) rules[TREE_TABLE[claim.tree]].push(claim.rule);
  }
  try {
    await tool.restore(TABLES.map((table) => probeOf(table, rules[table])));
    return undefined;
  } catch (error) {
    if (isRefusal(error)) return error.message;
    throw error;
  }
}

/** Jumps are left out: where they lead may not be there yet. */
function probeOf(table: Table, rules: readonly string[]) {
  const alone = rules.map((rule) => rule.replace(/ ?-j KUBE-\S+$/, ''));
  const write = new Map([[PROBE_CHAIN, { rules: alone, owner: 'a trial' }]]);
  return { table, write, remove: [], insert: [], withdraw: [] };
}

/** Whether iptables ran and objected to its input, rather than could not work at all. */
export function isRefusal(error: unknown): error is NodeplaneError {
  return error instanceof NodeplaneError && error.code === 'ERR_IPTABLES' && error.facts.rule !== undefined;
}

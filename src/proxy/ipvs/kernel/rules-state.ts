import { atOnce, type Drift, type Removals } from '../../../core/index.ts';
import {
  chainDrift,
  diffChains,
  type ForeignRule,
  type IptablesTool,
  isEmptyDiff,
  isGeneratedChain,
  jumpDrift,
  missingJumps,
  PROXY_JUMP,
  removalsOf,
  type SavedTable,
  surplusJumps,
  type TableRestore,
  targetOf,
} from '../../rules/index.ts';
import { type FixedRules, IPVS_TABLES, type IpvsTable, type Jump } from '../compile/rules.ts';

/** The tables as they are, by name. */
export type SavedTables = ReadonlyMap<string, SavedTable>;

/**
 * Brings the rules into the kernel, in one restore; what a proxy in iptables mode had there goes with it. Nothing is run when
 * all is as it should be.
 *
 * @returns how many rules were written
 * @throws ERR_IPTABLES
 */
export async function restoreRules(tool: IptablesTool, rules: FixedRules): Promise<number> {
  const tables = planTakeover(rules, await saveTables(tool));
  if (tables.length === 0) return 0;
  await tool.restore(tables);
  return tables.reduce(
    (sum, { write }) => sum + [...write.values()].reduce((n, chain) => n + chain.rules.length, 0),
    0,
  );
}

/**
 * Takes the rules away, in one restore; see `planRuleCleanup`. Throws ERR_IPTABLES.
 *
 * @param tables where to look. @default all of them
 * @param noted says what goes, and whether to do it. @default everything
 */
export async function removeRules(
  tool: IptablesTool,
  {
    tables,
    noted,
  }: {
    readonly tables?: readonly IpvsTable[];
    readonly noted?: { readonly place: string; readonly removals: Removals } | undefined;
  } = {},
): Promise<void> {
  const changes = planRuleCleanup(await tool.saveAll(), tables);
  if (changes.length === 0 || noted?.removals.note(...removalsOf(noted.place, changes)) === false) return;
  await tool.restore(changes);
}

/** Says where the rules differ from those wanted. Throws ERR_IPTABLES. */
export async function ruleDrift(tool: IptablesTool, rules: FixedRules): Promise<Drift[]> {
  const saved = await saveTables(tool);
  const drift: Drift[] = [];
  for (const table of IPVS_TABLES) {
    const chains: SavedTable = saved.get(table) ?? new Map();
    drift.push(...jumpDrift(table, jumpsOf(rules, table), chains));
    for (const [name, wanted] of rules.chains[table]) {
      const found = chainDrift(table, name, wanted, chains.get(name)?.rules);
      if (found) drift.push(found);
    }
  }
  return drift;
}

/** From whatever the kernel holds to the rules wanted; tables that are right already are left out. Exported for tests. */
export function planTakeover(rules: FixedRules, saved: SavedTables): TableRestore[] {
  return IPVS_TABLES.flatMap((table) => {
    const chains: SavedTable = saved.get(table) ?? new Map();
    const wanted = rules.chains[table];
    const jumps = jumpsOf(rules, table);
    const insert = missingJumps(jumps, chains);
    const texts = new Set(jumps.map(textOf));
    const removal = planRemoval(
      table,
      chains,
      [...chains.keys()].filter((name) => isProxyChain(table, name) && !wanted.has(name)),
      (rule) => !texts.has(textOf(rule)),
    );
    const edits = new Map([...wanted].map(([name, lines]) => [name, { rules: lines, owner: `the chain ${name}` }]));
    const { write } = atOnce(diffChains(chains, edits));
    const withdraw = [...removal.withdraw, ...surplusJumps(jumps, chains)];
    const restore = { table, ...removal, insert, withdraw, write: new Map([...write, ...removal.write]) };
    return isEmptyDiff(restore) && insert.length === 0 && restore.withdraw.length === 0 ? [] : [restore];
  });
}

/**
 * Takes away the chains and jumps of a proxy in IPVS mode. Those it shares with a proxy in iptables mode stay while that mode
 * is in force. Exported for tests.
 *
 * @param tables @default all that have any
 */
export function planRuleCleanup(saved: SavedTables, tables: readonly IpvsTable[] = IPVS_TABLES): TableRestore[] {
  const services = saved.get('nat')?.get('KUBE-SERVICES');
  const otherMode = services !== undefined && !isIpvsMode(saved);
  return tables.flatMap((table) => {
    const chains: SavedTable = saved.get(table) ?? new Map();
    const goes = (name: string) => IPVS_CHAINS[table].includes(name) && !(otherMode && SHARED_CHAINS.has(name));
    const removal = planRemoval(
      table,
      chains,
      [...chains.keys()].filter(goes),
      ({ rule }) => goes(targetOf(rule) ?? '') || rule.includes(FIREWALL_COMMENT),
    );
    const nothing = isEmptyDiff(removal) && removal.withdraw.length === 0;
    return nothing ? [] : [{ table, ...removal, insert: [] }];
  });
}

/** Whether a proxy in IPVS mode, ours or a kube-proxy, has its rules here. */
export function isIpvsMode(saved: SavedTables): boolean {
  const services = saved.get('nat')?.get('KUBE-SERVICES');
  return services?.rules.some((rule) => rule.includes('--match-set KUBE-')) ?? false;
}

/** Chains of a proxy in IPVS mode, kube-proxy's own included. */
const IPVS_CHAINS: Readonly<Record<IpvsTable, readonly string[]>> = {
  filter: [
    'KUBE-FORWARD',
    'KUBE-NODE-PORT',
    'KUBE-PROXY-FIREWALL',
    'KUBE-SOURCE-RANGES-FIREWALL',
    'KUBE-IPVS-FILTER',
    'KUBE-IPVS-OUT-FILTER',
    'KUBE-IPVS-DROP-OUTSIDE',
    'KUBE-IPVS-REFUSE',
  ],
  mangle: ['KUBE-IPVS-OUTSIDE', 'KUBE-IPVS-OUT-FILTER', 'KUBE-SOURCE-RANGES-FIREWALL'],
  nat: [
    'KUBE-SERVICES',
    'KUBE-LOAD-BALANCER',
    'KUBE-NODE-PORT',
    'KUBE-POSTROUTING',
    'KUBE-MARK-MASQ',
    'KUBE-IPVS-HAIRPIN',
  ],
};

/** Those a proxy in iptables mode has too. */
const SHARED_CHAINS: ReadonlySet<string> = new Set([
  'KUBE-FORWARD',
  'KUBE-PROXY-FIREWALL',
  'KUBE-SERVICES',
  'KUBE-POSTROUTING',
  'KUBE-MARK-MASQ',
]);
/** Of the jumps that only IPVS mode makes to a shared chain. */
const FIREWALL_COMMENT = '--comment "kube-proxy firewall rules"';

/** Entry chains that only a proxy in iptables mode has, besides the chains of Services (`isGeneratedChain`). */
const IPTABLES_ENTRY: Readonly<Record<IpvsTable, readonly string[]>> = {
  filter: ['KUBE-SERVICES', 'KUBE-EXTERNAL-SERVICES', 'KUBE-NODEPORTS'],
  mangle: [],
  nat: ['KUBE-NODEPORTS'],
};

function isProxyChain(table: IpvsTable, name: string): boolean {
  if (IPVS_CHAINS[table].includes(name) || IPTABLES_ENTRY[table].includes(name)) return true;
  return table !== 'mangle' && isGeneratedChain(name);
}

/**
 * Takes chains away, and a proxy's jumps that are not to stay. A chain that somebody else's rule leads to is emptied and
 * stays, because the kernel refuses to delete it; one that is empty already is left alone.
 */
function planRemoval(
  table: IpvsTable,
  chains: SavedTable,
  names: readonly string[],
  isObsolete: (rule: ForeignRule) => boolean,
): Pick<TableRestore, 'write' | 'remove' | 'withdraw'> {
  const withdraw: ForeignRule[] = [];
  const held = new Set<string>();
  for (const [chain, { rules }] of chains) {
    if (isProxyChain(table, chain)) continue;
    for (const rule of rules) {
      const target = targetOf(rule);
      if (!target || !isProxyChain(table, target)) continue;
      if (PROXY_JUMP.test(rule) && isObsolete({ chain, rule })) withdraw.push({ chain, rule });
      else held.add(target);
    }
  }
  const owner = 'a chain that is no longer used';
  const emptied = names.filter((name) => held.has(name) && chains.get(name)!.rules.length > 0);
  return {
    write: new Map(emptied.map((name) => [name, { rules: [], owner }])),
    remove: names.filter((name) => !held.has(name)),
    withdraw,
  };
}

function jumpsOf({ jumps }: FixedRules, table: IpvsTable): Jump[] {
  return jumps.filter((jump) => jump.table === table);
}

function textOf({ chain, rule }: ForeignRule): string {
  return `${chain} ${rule}`;
}

/** All tables with rules of ours. Throws ERR_IPTABLES. */
async function saveTables(tool: IptablesTool): Promise<SavedTables> {
  const saved = await Promise.all(IPVS_TABLES.map(async (table) => [table, await tool.save(table)] as const));
  return new Map(saved);
}

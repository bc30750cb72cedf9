import type { Expression, NftChain, NftChange, NftReader, NftSet, TableRef } from '../netlink/nftables/index.ts';
import { sameBase, sameRuleBodies } from './same-rules.ts';

/** A chain with its rules. */
export interface ChainWithRules {
  readonly chain: NftChain;
  readonly rules: readonly (readonly Expression[])[];
}

/** What a table of ours holds besides the elements of its sets. */
export interface TableLayout {
  readonly table: TableRef;
  readonly sets: readonly NftSet[];
  readonly chains: readonly ChainWithRules[];
}

/**
 * What to change so that the table is there, with its sets, and each chain is hooked in where it is to be and has
 * exactly its rules; empty when all is as it should be. Others may have flushed chains, or the whole ruleset, at any
 * time; elements are not looked at here.
 *
 * @param more chains besides those that are always there
 */
export function tableRepairs(
  ruleset: NftReader,
  layout: TableLayout,
  more: readonly ChainWithRules[] = [],
): NftChange[] {
  const rulesOf = new Map<string, (readonly Expression[])[]>();
  for (const { chain, expressions } of ruleset.listRules(layout.table)) {
    const rules = rulesOf.get(chain) ?? [];
    rules.push(expressions);
    rulesOf.set(chain, rules);
  }
  const chains = [...layout.chains, ...more];
  const { family, name: table } = layout.table;
  const asleep = ruleset.listTables(family).some(({ name, dormant }) => name === table && dormant);
  const present = new Map(ruleset.listChains(layout.table).map((chain) => [chain.name, chain]));
  const misplaced = chains.filter(({ chain }) => {
    const found = present.get(chain.name);
    return found !== undefined && !sameBase(found.base, chain.base);
  });
  const broken = chains.filter(
    (chain) => misplaced.includes(chain) || !sameRules(rulesOf.get(chain.chain.name) ?? [], chain.rules),
  );
  // Naming the table wakes it.
  const named: NftChange = { operation: 'add', object: layout.table };
  if (broken.length === 0) return asleep ? [named] : [];
  return [
    ...(asleep ? [] : [named]),
    ...misplaced.map(({ chain }): NftChange => {
      return { operation: 'delete', object: { kind: 'chain', family, table, name: chain.name } };
    }),
    ...layout.sets.map((object): NftChange => ({ operation: 'add', object })),
    ...broken.map(({ chain }): NftChange => ({ operation: 'add', object: chain })),
    ...broken.flatMap(({ chain, rules }): NftChange[] => {
      const { family, table, name } = chain;
      return [
        { operation: 'flush', object: { kind: 'chain', family, table, name } },
        ...rules.map((expressions): NftChange => {
          return { operation: 'add', object: { kind: 'rule', family, table, chain: name, expressions } };
        }),
      ];
    }),
    // Behind new base chains, and not with one that goes: the kernel refuses these (nft_table_pending_update). The next look wakes it.
    ...(asleep && misplaced.length === 0 ? [named] : []),
  ];
}

/** Whether a table has no sets and chains but these. What else others put into a table of ours meets packets as well. */
export function holdsNothingElse(ruleset: NftReader, { table, sets, chains }: TableLayout): boolean {
  const known = new Set([...sets.map(({ name }) => name), ...chains.map(({ chain }) => chain.name)]);
  const isKnown = ({ name }: { readonly name: string }) => known.has(name);
  const named = ruleset.listSets(table).filter(({ flags }) => !flags?.includes('anonymous'));
  return named.every(isKnown) && ruleset.listChains(table).every(isKnown);
}

function sameRules(found: readonly (readonly Expression[])[], wanted: ChainWithRules['rules']): boolean {
  const bodies = (rules: readonly (readonly Expression[])[]) => rules.map((expressions) => ({ expressions }));
  return sameRuleBodies(bodies(found), bodies(wanted));
}

import { type Expression, type NftChange, type NftReader, sameExpressions } from '../../netlink/index.ts';
import { type ChainWithRules, POD_CHAINS } from './pod-chains.ts';
import { POD_SETS, POD_TABLE } from './pod-table.ts';

/**
 * What to change so that the table is there, with its sets, and each chain has exactly its rules; empty when all is as it
 * should be. Others may have flushed chains, or the whole ruleset, at any time; elements are not looked at here.
 *
 * @param more chains besides those that are always there
 */
export function tableRepairs(ruleset: NftReader, more: readonly ChainWithRules[] = []): NftChange[] {
  const rulesOf = new Map<string, (readonly Expression[])[]>();
  for (const { chain, expressions } of ruleset.listRules(POD_TABLE)) {
    const rules = rulesOf.get(chain) ?? [];
    rules.push(expressions);
    rulesOf.set(chain, rules);
  }
  const chains = [...POD_CHAINS, ...more];
  const broken = chains.filter(({ chain, rules }) => !sameRules(rulesOf.get(chain.name) ?? [], rules));
  if (broken.length === 0) return [];
  return [
    { operation: 'add', object: POD_TABLE },
    ...POD_SETS.map((object): NftChange => ({ operation: 'add', object })),
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
  ];
}

function sameRules(found: readonly (readonly Expression[])[], wanted: ChainWithRules['rules']): boolean {
  return found.length === wanted.length && wanted.every((rule, i) => sameExpressions(rule, found[i]!));
}

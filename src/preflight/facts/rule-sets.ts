import { IP_FAMILIES, type IpFamily } from '../../core/index.ts';
import type { IptablesVariant, SavedTable } from '../../proxy/rules/index.ts';
import type { NodeFacts } from './node-facts.ts';

/** The rules of one variant of iptables in one family. */
export interface RuleSet {
  readonly family: IpFamily;
  readonly variant: IptablesVariant;
  readonly tables: ReadonlyMap<string, SavedTable>;
}

/** All that iptables has on the node, as far as it can be read. */
export interface RuleSets {
  readonly sets: readonly RuleSet[];
  /** What cannot be read, and why, in words. */
  readonly unread: readonly string[];
}

/** A chain and where it is. */
export interface FoundChain {
  readonly set: RuleSet;
  readonly table: string;
  readonly name: string;
  readonly rules: readonly string[];
}

/** Reads both variants in both families. */
export async function readRuleSets(node: NodeFacts): Promise<RuleSets> {
  const sets: RuleSet[] = [];
  const unread: string[] = [];
  for (const family of IP_FAMILIES) {
    for (const variant of ['nft', 'legacy'] as const) {
      const state = await node.iptables(family, variant);
      if ('unreadable' in state) unread.push(`iptables-${variant} ${family}: ${state.unreadable}`);
      else sets.push({ family, variant, tables: state });
    }
  }
  return { sets, unread };
}

/** The chains of a rule set, built-in ones too. */
export function* chainsOf(set: RuleSet): Generator<FoundChain> {
  for (const [table, chains] of set.tables) {
    for (const [name, { rules }] of chains) yield { set, table, name, rules };
  }
}

/** `iptables-nft IPv4, table nat, chain KUBE-SERVICES`, without the chain for a whole table. */
export function placeOf({ set, table, name }: Pick<FoundChain, 'set' | 'table' | 'name'>): string {
  return `iptables-${set.variant} ${set.family}, table ${table}, chain ${name}`;
}

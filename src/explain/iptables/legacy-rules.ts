import type { SavedTable } from '../../proxy/rules/index.ts';
import type { Packet } from '../packet/index.ts';
import { type Chains, type Hook, type RuleSource, type Situation, type Station, walkChain } from '../walk/index.ts';
import { evaluateParsedRule } from './evaluate-rule.ts';
import type { Facts } from './facts.ts';
import { type ParsedRule, parseRule } from './parse-rule.ts';

/** What iptables-save prints, by table: `printedTables`, or all of it read. */
export type Saved = ReadonlyMap<string, Pick<SavedTable, 'get'>>;

interface NumberedRule {
  readonly parsed: ParsedRule;
  readonly text: string;
  readonly number: number;
}

/** Built-in chains by hook, and each table's place there: NF_IP_PRI_*, <linux/netfilter_ipv4.h>; the same for IPv6. */
const CHAIN_OF: Readonly<Record<Hook, string>> = {
  prerouting: 'PREROUTING',
  input: 'INPUT',
  forward: 'FORWARD',
  output: 'OUTPUT',
  postrouting: 'POSTROUTING',
};
const NAT_SOURCE = 100;
const PRIORITY: Readonly<Record<string, number>> = { raw: -300, mangle: -150, nat: -100, filter: 0, security: 50 };

/**
 * The tables of legacy iptables, as its save program prints them: the kernel gives them out in no other way, and all at once.
 *
 * A chain without rules that lets everything through is left out: it does nothing, and its order among others does not matter.
 */
export class LegacyRules implements RuleSource {
  readonly name = 'iptables-legacy';
  readonly #saved: { readonly [family in Packet['family']]?: Saved | undefined };
  readonly #facts: Facts;
  readonly #parsed = new WeakMap<readonly string[], readonly NumberedRule[]>();

  constructor(saved: { readonly [family in Packet['family']]?: Saved | undefined }, facts: Facts = {}) {
    this.#saved = saved;
    this.#facts = facts;
  }

  stations(hook: Hook, family: Packet['family']): readonly Station[] {
    const stations: Station[] = [];
    for (const [name, table] of this.#saved[family] ?? []) {
      const base = table.get(CHAIN_OF[hook]);
      const priority = name === 'nat' && (hook === 'input' || hook === 'postrouting') ? NAT_SOURCE : PRIORITY[name];
      if (!base || priority === undefined || (base.rules.length === 0 && base.policy === undefined)) continue;
      const policy = base.policy === 'DROP' ? 'drop' : 'accept';
      stations.push({
        type: name === 'nat' ? 'nat' : 'filter',
        priority,
        run: (situation, steps) =>
          walkChain(CHAIN_OF[hook], policy, this.#chainsOf(name, table, hook, situation), steps),
      });
    }
    return stations.sort((a, b) => a.priority - b.priority);
  }

  #chainsOf(table: string, chains: Pick<SavedTable, 'get'>, hook: Hook, situation: Situation): Chains<NumberedRule> {
    const surroundings = { facts: this.#facts, isChain: (name: string) => chains.get(name)?.builtIn === false };
    return {
      rulesOf: (name) => this.#rulesOf(chains.get(name)?.rules ?? []),
      evaluate: ({ parsed }) => evaluateParsedRule(parsed, situation, surroundings),
      step: (name, rule, verdict) => ({
        source: 'iptables-legacy',
        hook,
        chain: { table, name },
        rule: rule && { number: rule.number, text: rule.text },
        verdict,
      }),
    };
  }

  /** Only what a walk comes to is taken apart, once. */
  #rulesOf(rules: readonly string[]): readonly NumberedRule[] {
    const known = this.#parsed.get(rules);
    if (known) return known;
    const parsed = rules.map((text, index) => ({ parsed: parseRule(text), text, number: index + 1 }));
    this.#parsed.set(rules, parsed);
    return parsed;
  }
}

import type { Packet } from '../packet/index.ts';
import {
  type Chains,
  Draws,
  type Hook,
  type RuleSource,
  type Situation,
  type Station,
  walkChain,
  withDrawn,
} from '../walk/index.ts';
import { askedBeforeDrawing, evaluateParsedRule, ownOptions } from './evaluate-rule.ts';
import type { Facts } from './facts.ts';
import { type ParsedRule, parseRule } from './parse-rule.ts';
import { ruleText } from './rule-text.ts';

/** A chain of legacy iptables: of `KernelChains`, or what a save program prints (`SavedChain`). */
export interface LegacyChain {
  readonly builtIn: boolean;
  /** What becomes of packets that no rule decides; built-in chains only. @default ACCEPT */
  readonly policy?: string;
  /** In order; as text without `-A CHAIN`. */
  readonly rules: readonly (string | ParsedRule)[];
}

/** The chains of a table by name. */
export interface LegacyChains {
  get(chain: string): LegacyChain | undefined;
}

/** By table. */
export type LegacyTables = ReadonlyMap<string, LegacyChains>;

interface NumberedRule {
  readonly parsed: ParsedRule;
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
/** Of those of `mangle` the one in hook output is of that type alone: ipt_mangle_out, net/ipv4/netfilter/iptable_mangle.c. */
const TYPE: Readonly<Record<string, Station['type']>> = { nat: 'nat', mangle: 'route' };
const PRIORITY: Readonly<Record<string, number>> = { raw: -300, mangle: -150, nat: -100, filter: 0, security: 50 };

/**
 * The tables of legacy iptables.
 *
 * A chain without rules that lets everything through is left out: it does nothing, and its order among others does not matter.
 */
export class LegacyRules implements RuleSource {
  readonly name = 'iptables-legacy';
  readonly #tables: { readonly [family in Packet['family']]?: LegacyTables | undefined };
  readonly #facts: Facts;
  readonly #draws = new Draws<NumberedRule>(({ parsed }) => askedBeforeDrawing(parsed));
  readonly #parsed = new WeakMap<LegacyChain['rules'], readonly NumberedRule[]>();

  constructor(tables: { readonly [family in Packet['family']]?: LegacyTables | undefined }, facts: Facts = {}) {
    this.#tables = tables;
    this.#facts = facts;
  }

  stations(hook: Hook, family: Packet['family']): readonly Station[] {
    const stations: Station[] = [];
    for (const [name, table] of this.#tables[family] ?? []) {
      const base = table.get(CHAIN_OF[hook]);
      const priority = name === 'nat' && (hook === 'input' || hook === 'postrouting') ? NAT_SOURCE : PRIORITY[name];
      // A chain of somebody's own may have the name of one that other tables have built in.
      if (!base?.builtIn || priority === undefined || (base.rules.length === 0 && base.policy === undefined)) continue;
      const policy = base.policy === 'DROP' ? 'drop' : 'accept';
      stations.push({
        type: TYPE[name] ?? 'filter',
        priority,
        run: (situation, steps) =>
          walkChain(CHAIN_OF[hook], policy, this.#chainsOf(name, table, hook, situation), steps),
      });
    }
    return stations.sort((a, b) => a.priority - b.priority);
  }

  #chainsOf(table: string, chains: LegacyChains, hook: Hook, situation: Situation): Chains<NumberedRule> {
    const surroundings = { facts: this.#facts, isChain: (name: string) => chains.get(name)?.builtIn === false };
    return {
      rulesOf: (name) => this.#rulesOf(chains.get(name)?.rules ?? []),
      draw: (rules, at) =>
        this.#draws.from(at, rules, ({ parsed }) => ownOptions(parsed.own, situation) === true, situation.choose),
      evaluate: ({ parsed }, _, isDrawn) => {
        situation.meeting.evaluated();
        const asked = isDrawn ? { ...situation, choose: withDrawn(situation.choose) } : situation;
        return evaluateParsedRule(parsed, asked, surroundings);
      },
      step: (name, rule, verdict) => ({
        source: 'iptables-legacy',
        hook,
        chain: { family: situation.packet.family, table, name },
        rule: rule && {
          number: rule.number,
          get text() {
            return ruleText(rule.parsed);
          },
        },
        verdict,
      }),
    };
  }

  /** Only what a walk comes to is taken apart, once. */
  #rulesOf(rules: LegacyChain['rules']): readonly NumberedRule[] {
    const known = this.#parsed.get(rules);
    if (known) return known;
    const numbered = rules.map((rule, index) => ({
      parsed: typeof rule === 'string' ? parseRule(rule) : rule,
      number: index + 1,
    }));
    this.#parsed.set(rules, numbered);
    return numbered;
  }
}

import type { NftRule } from '../../netlink/nftables/index.ts';
import { evaluateTextRule, type Facts } from '../iptables/index.ts';
import type { Packet } from '../packet/index.ts';
import {
  type Chains,
  type Hook,
  type Outcome,
  type RuleSource,
  type Situation,
  type Station,
  walkChain,
} from '../walk/index.ts';
import { evaluateRule } from './evaluate-rule.ts';
import { rememberedText } from './remembered.ts';
import type { BaseChainOf, Rules } from './surroundings.ts';

/** A rule, and how iptables-nft prints it where that is known. */
interface TextedRule {
  readonly rule: NftRule;
  readonly text: string | undefined;
}

/**
 * All rules of nf_tables, those that iptables-nft wrote included. What of those are matches and targets of x_tables in
 * disguise is a blob in netlink; it is evaluated by what iptables-nft-save prints for the same rule (`Rules.textsOf`), and
 * nobody can tell what it does where that is missing.
 */
export class NftRules implements RuleSource {
  readonly name = 'nftables';
  readonly #rules: Rules;
  readonly #facts: Facts;

  /** @param facts for what iptables-nft wrote */
  constructor(rules: Rules, facts: Facts = {}) {
    this.#rules = rules;
    this.#facts = facts;
  }

  stations(hook: Hook, family: Packet['family']): readonly Station[] {
    return this.#rules.baseChains(hook, family).map((chain) => ({
      type: chain.base.type === 'nat' ? 'nat' : 'filter',
      priority: chain.base.priority,
      run: (situation, steps) =>
        walkChain(chain.name, chain.base.policy ?? 'accept', this.#chainsOf(chain, hook, situation), steps),
    }));
  }

  #chainsOf({ family, table, name: base }: BaseChainOf, hook: Hook, situation: Situation): Chains<TextedRule> {
    const chain = (name: string) => ({ kind: 'chain', family, table, name }) as const;
    const { packet, meeting } = situation;
    const { made } = meeting;
    return {
      rulesOf: (name) => {
        const rules = this.#rules.rulesOf(chain(name));
        const texts = rules.some(isBlob) ? this.#rules.textsOf?.(chain(name)) : undefined;
        // Of another length: somebody changed the chain between the two looks at it.
        const known = texts?.length === rules.length ? texts : undefined;
        return rules.map((rule, index) => ({ rule, text: known?.[index] }));
      },
      evaluate: ({ rule, text }): Outcome => {
        if (!isBlob(rule) || text === undefined) return evaluateRule(rule, { ...situation, rules: this.#rules });
        const isChain = (name: string) => this.#rules.hasChain?.(chain(name)) ?? false;
        return evaluateTextRule(text, situation, { facts: this.#facts, isChain });
      },
      step: (name, texted, verdict) => ({
        source: 'nftables',
        hook,
        chain: chain(name),
        rule: texted?.rule,
        text: texted?.text,
        verdict,
      }),
      meet: (place) =>
        meeting.at(made, () => [hook, family, table, base, place(), packet.state, rememberedText(packet)].join('\0')),
    };
  }
}

/** Whether an extension of x_tables is in it, as nf_tables keeps them: net/netfilter/nft_compat.c. */
function isBlob({ expressions }: NftRule): boolean {
  return expressions.some((one) => one.kind === 'unknown' && (one.name === 'match' || one.name === 'target'));
}

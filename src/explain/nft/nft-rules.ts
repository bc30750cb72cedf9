import type { ChainRef, Expression, NftRule } from '../../netlink/nftables/index.ts';
import {
  type BlobContext,
  decodeMatch,
  decodeTarget,
  type Extension,
  evaluateTextRule,
  type Facts,
  unreadable,
} from '../iptables/index.ts';
import type { Packet } from '../packet/index.ts';
import {
  type Chains,
  Draws,
  type Hook,
  type Outcome,
  type RuleSource,
  type Situation,
  type Station,
  walkChain,
  withDrawn,
} from '../walk/index.ts';
import { askedBeforeDrawing, holdsBeforeDrawing, isSameDraw } from './draws.ts';
import { evaluateRule } from './evaluate-rule.ts';
import { rememberedText } from './remembered.ts';
import type { BaseChainOf, Rules } from './surroundings.ts';

const NO_MATCH: Outcome = { kind: 'no match' };
/** NFT_JUMP_STACK_SIZE, <net/netfilter/nf_tables.h>. */
const MOST_JUMPS = 16;

/** A rule, and what of it is of x_tables. */
interface WalkedRule {
  readonly rule: NftRule;
  readonly extensions: ReadonlyMap<Expression, Extension>;
  /** It draws what the one before it has drawn in vain: whatever it finds now, that one could have found. */
  readonly isAgain: boolean;
  /** How iptables-nft prints it, where something of it cannot be read and it was asked. */
  readonly text: string | undefined;
}

/**
 * All rules of nf_tables, those that iptables-nft wrote included: what of those are matches and targets of x_tables in disguise is
 * evaluated as in rules of legacy iptables. Where something of them cannot be read here, the rule is evaluated by what
 * iptables-nft prints for it (`Rules.textsOf`).
 */
export class NftRules implements RuleSource {
  readonly name = 'nftables';
  readonly #rules: Rules;
  readonly #facts: Facts;
  readonly #draws = new Draws<WalkedRule>(({ rule, extensions, text }) =>
    text === undefined ? askedBeforeDrawing(rule, extensions) : undefined,
  );
  readonly #walked = new WeakMap<readonly NftRule[], readonly WalkedRule[]>();

  /** @param facts for what iptables-nft wrote */
  constructor(rules: Rules, facts: Facts = {}) {
    this.#rules = rules;
    this.#facts = facts;
  }

  stations(hook: Hook, family: Packet['family']): readonly Station[] {
    return this.#rules.baseChains(hook, family).map((chain) => ({
      type: chain.base.type,
      priority: chain.base.priority,
      run: (situation, steps) =>
        walkChain(chain.name, chain.base.policy ?? 'accept', this.#chainsOf(chain, hook, situation), steps),
    }));
  }

  #chainsOf({ family, table, name: base }: BaseChainOf, hook: Hook, situation: Situation): Chains<WalkedRule> {
    const chain = (name: string) => ({ kind: 'chain', family, table, name }) as const;
    const { packet, meeting } = situation;
    const { made } = meeting;
    const surroundings = { rules: this.#rules, facts: this.#facts };
    return {
      mostJumps: MOST_JUMPS,
      rulesOf: (name) => this.#rulesOf(chain(name)),
      draw: (rules, at) =>
        this.#draws.from(
          at,
          rules,
          (one) => holdsBeforeDrawing(one.rule, { ...situation, ...surroundings, extensions: one.extensions }),
          situation.choose,
        ),
      evaluate: ({ rule, extensions, text, isAgain }, _, isDrawn): Outcome => {
        meeting.evaluated();
        if (isAgain && meeting.isJoining) return NO_MATCH;
        const choose = isDrawn ? withDrawn(situation.choose) : situation.choose;
        if (text === undefined) return evaluateRule(rule, { ...situation, ...surroundings, extensions, choose });
        const isChain = (name: string) => this.#rules.hasChain?.(chain(name)) ?? false;
        return evaluateTextRule(text, situation, { facts: this.#facts, isChain });
      },
      step: (name, walked, verdict) => ({
        source: 'nftables',
        hook,
        chain: chain(name),
        rule: walked?.rule,
        text: walked?.text,
        verdict,
      }),
      meet: (place) =>
        meeting.at(made, () => [hook, family, table, base, place(), packet.state, rememberedText(packet)].join('\0')),
    };
  }

  #rulesOf(chain: ChainRef): readonly WalkedRule[] {
    const rules = this.#rules.rulesOf(chain);
    const known = this.#walked.get(rules);
    if (known) return known;
    const decoded = rules.map((rule) => this.#decode(rule));
    const texts = decoded.every(({ isWhole }) => isWhole) ? undefined : this.#rules.textsOf?.(chain);
    const walked = rules.map((rule, index) => {
      const { extensions, isWhole } = decoded[index]!;
      // Of another length: somebody changed the chain between the two looks at it.
      const isAgain = index > 0 && isSameDraw(rule, rules[index - 1]!);
      return { rule, extensions, isAgain, text: isWhole || texts?.length !== rules.length ? undefined : texts[index] };
    });
    this.#walked.set(rules, walked);
    return walked;
  }

  /** Whole is a rule of which everything can be read; what is not of iptables-nft has no other form to be read in. */
  #decode({ family, expressions }: NftRule): Pick<WalkedRule, 'extensions'> & { readonly isWhole: boolean } {
    const context: BlobContext = {
      family: family === 'ip6' ? 'IPv6' : 'IPv4',
      setName: (index) => this.#facts.ipsets?.nameOf(index),
    };
    const extensions = new Map<Expression, Extension>();
    let isWhole = true;
    for (const expression of expressions) {
      if (expression.kind !== 'match' && expression.kind !== 'target') continue;
      const decode = expression.kind === 'match' ? decodeMatch : decodeTarget;
      const extension = decode(expression, context);
      extensions.set(expression, extension ?? unreadable(expression));
      isWhole &&= extension !== undefined;
    }
    const isOfIptables = extensions.size > 0;
    return { extensions, isWhole: isWhole && !(isOfIptables && expressions.some(({ kind }) => kind === 'unknown')) };
  }
}

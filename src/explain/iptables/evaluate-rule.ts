import type { Outcome, Situation } from '../walk/index.ts';
import type { Facts } from './facts.ts';
import { isProtocol } from './match.ts';
import { holds } from './matches.ts';
import { type Extension, type Option, type ParsedRule, parseRule } from './parse-rule.ts';
import { matchText } from './rule-text.ts';
import { applyTarget } from './targets.ts';
import { all, inNetwork, isInterface, negate, type Truth } from './values.ts';

/** What is around a rule. */
export interface Surroundings {
  readonly facts: Facts;
  /** Whether its table has such a chain. */
  isChain(name: string): boolean;
}

const NO_MATCH: Outcome = { kind: 'no match' };

/**
 * Evaluates a rule as iptables-save prints it, without `-A CHAIN`. Where a match decides that is not known, both ways are walked
 * (`choose`); a target that is not known ends the walk: `cannot tell`.
 */
export function evaluateTextRule(text: string, situation: Situation, surroundings: Surroundings): Outcome {
  return evaluateParsedRule(parseRule(text), situation, surroundings);
}

/** See `evaluateTextRule`. */
export function evaluateParsedRule(
  { own, matches, target }: ParsedRule,
  situation: Situation,
  { facts, isChain }: Surroundings,
): Outcome {
  const asked = { ...situation, facts };
  const chances = matches.filter(({ name }) => name === 'statistic');
  const plain = matches.filter(({ name }) => name !== 'statistic');
  const truths = [ownOptions(own, situation), ...plain.map((match) => holds(match, asked))];
  const truth = all(truths);
  if (truth === false) return NO_MATCH;
  if (truth === undefined) {
    const about =
      truths[0] === undefined ? 'its addresses or interfaces' : matchText(plain[truths.indexOf(undefined) - 1]!);
    if (situation.choose('unknown', about, 2) === 1) return NO_MATCH;
  }
  for (const chance of chances) if (!draw(chance, situation)) return NO_MATCH;
  if (!target) return { kind: 'continue' };
  if (isChain(target.name)) return { kind: target.goto ? 'goto' : 'jump', chain: target.name };
  return applyTarget(target, asked);
}

/** Whether the rule's own options are so. */
export function ownOptions(options: readonly Option[], { packet }: Situation): Truth {
  return all(options.map(({ name, values, inverted }) => negate(ownOption(name, values[0] ?? '', packet), inverted)));
}

function ownOption(name: string, value: string, packet: Situation['packet']): Truth {
  switch (name) {
    case '-s':
      return inNetwork(packet.ends.source, value);
    case '-d':
      return inNetwork(packet.ends.destination, value);
    case '-i':
      return packet.isIifSeen ? isInterface(packet.iif?.name ?? '', value) : undefined;
    case '-o':
      return isInterface(packet.oif?.name ?? '', value);
    case '-p':
      return isProtocol(value, packet.protocol);
    case '-f':
      // Connection tracking puts fragments together before any of these tables sees them.
      return false;
    default:
      return undefined;
  }
}

/**
 * Whether a packet goes on past a match that is evaluated in its place among others, as nf_tables does. Where it draws, or
 * nobody can tell, all ways are walked.
 */
export function passes(match: Extension, asked: Situation & { readonly facts: Facts }): boolean {
  if (match.name === 'statistic') return draw(match, asked);
  return holds(match, asked) ?? asked.choose('unknown', matchText(match), 2) === 0;
}

/** What a rule asks for besides one draw, if that is the protocol and no more; undefined: it is another rule (`Draws`). */
export function askedBeforeDrawing({ own, matches }: ParsedRule): string | undefined {
  const [draw, ...others] = matches.filter(({ name }) => name !== 'comment');
  if (!draw || others.length > 0 || !isFairDraw(draw) || own.some(({ name }) => name !== '-p')) return undefined;
  return own.map(({ values, inverted }) => `${inverted} ${values.join()}`).join();
}

/** Whether it is a match by chance alone that may come out either way. */
export function isFairDraw({ name, options }: Extension): boolean {
  const probability = options.find((option) => option.name === '--probability');
  const chance = Number(probability?.values[0]);
  return name === 'statistic' && chance > 0 && chance < 1 && !probability!.inverted;
}

/** statistic_mt, net/netfilter/xt_statistic.c: all that can come up is walked. */
function draw(chance: Extension, { choose }: Situation): boolean {
  const value = (name: string) => chance.options.find((option) => option.name === name);
  const probability = value('--probability');
  const drawn = probability ? Number(probability.values[0]) : 1 / Number(value('--every')?.values[0] ?? Number.NaN);
  const isInverted = (probability ?? value('--every'))?.inverted === true;
  if (drawn >= 1) return !isInverted;
  if (drawn === 0) return isInverted;
  return choose(probability ? 'chance' : 'turn', matchText(chance), 2) === 0;
}

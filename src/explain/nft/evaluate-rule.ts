import { addressBits } from '../../core/index.ts';
import {
  type Expression,
  hostOrder32,
  type LoadExpression,
  type NftRule,
  nftFamily,
  readExtensionHeader,
  type UnknownExpression,
  type Verdict,
} from '../../netlink/nftables/index.ts';
import { refusalText } from '../../netlink/nftables/text/index.ts';
import type { Choose } from '../choices.ts';
import { applyTarget, holds, passes } from '../iptables/index.ts';
import { KnownBytes } from '../packet/index.ts';
import type { Outcome } from '../walk/index.ts';
import { alterHeader } from './alter.ts';
import { findElement } from './find-element.ts';
import { hashOf } from './jhash.ts';
import { loadCt, loadFib, loadMeta, loadPayload } from './load.ts';
import { translateBy } from './nat.ts';
import { Registers } from './registers.ts';
import { lookUp as askFor, isChangedBefore, isIdle, remember } from './remembered.ts';
import type { NftSituation } from './surroundings.ts';

/** What an expression does: ends the rule, or goes on (undefined). */
type Effect = Outcome | undefined;

const NO_MATCH: Outcome = { kind: 'no match' };
const CONTINUE: Outcome = { kind: 'continue' };
/**
 * Expressions in a form that the model does not have, which load registers, change what no rule here looks at, or end the rule, and
 * do nothing else: nft_*_eval in net/netfilter. Whatever comes of it, ways that end alike are one.
 */
const LOADING_OR_ENDING: ReadonlySet<string> = new Set([
  ...['payload', 'rt', 'exthdr', 'meta', 'ct', 'hash', 'osf', 'socket', 'tunnel', 'xfrm'],
  ...['quota', 'connlimit', 'flow_offload'],
]);
/** The same of those that the packet passes, whatever they say. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set(['log', 'dup', 'last']);
/** A draw among more than these is not walked option by option. */
const MOST_OPTIONS = 4096;

/**
 * Evaluates one rule as nft_do_chain (net/netfilter/nf_tables_core.c) does: expression after expression, until one does not
 * match or ends it. What the rule does to the packet is done to it.
 *
 * Where a value decides that is not known, both ways are walked (`choose`).
 */
export function evaluateRule(rule: NftRule, situation: NftSituation): Outcome {
  if (isIdle(rule, situation) || isRefuted(rule, situation)) return NO_MATCH;
  const registers = new Registers();
  for (const expression of rule.expressions) {
    const effect = evaluate(expression, rule, registers, situation);
    if (effect) return effect;
  }
  return CONTINUE;
}

/** Whether a packet passes the first expressions of a rule, which do nothing to it; false where that is not known. */
export function holdsUpTo(end: number, rule: NftRule, situation: NftSituation): boolean {
  const registers = new Registers();
  let isKnown = true;
  const choose: Choose = () => {
    isKnown = false;
    return 0;
  };
  const passed = rule.expressions
    .slice(0, end)
    .every((expression) => !evaluate(expression, rule, registers, { ...situation, choose }));
  return passed && isKnown;
}

/** One match that is false decides, whatever is drawn or not known in front of it. */
function isRefuted({ expressions }: NftRule, situation: NftSituation): boolean {
  return expressions.some(
    (expression) => expression.kind === 'match' && holds(situation.extensions.get(expression)!, situation) === false,
  );
}

function evaluate(expression: Expression, rule: NftRule, registers: Registers, situation: NftSituation): Effect {
  const { packet, host, choose } = situation;
  switch (expression.kind) {
    case 'payload':
    case 'meta':
    case 'ct':
    case 'fib':
    case 'rt':
    case 'immediate':
    case 'jhash':
    case 'numgen':
    case 'bitwise':
    case 'byteorder':
    case 'shift':
      return evaluateLoad(expression, registers, situation);
    case 'cmp': {
      const value = registers.read(expression.from, expression.data.length);
      const about = `${registers.unknownPart(expression.from, value.length)} ${expression.op} …`;
      return goOnIf(compare(value, expression.op, expression.data), about, choose);
    }
    case 'range': {
      const { from, op, first, last } = expression;
      const value = registers.read(from, first.length);
      const [low, high] = [value.compare(first), value.compare(last)];
      const within = low === undefined || high === undefined ? undefined : low >= 0 && high <= 0;
      const about = `${registers.unknownPart(from, first.length)} in a range`;
      return goOnIf(op === '==' ? within : negate(within), about, choose);
    }
    case 'lookup':
      return lookUp(expression, rule, registers, situation);
    case 'verdict':
      return outcomeOf(expression.verdict);
    case 'meta-set':
      // Nobody forwards what is for another host or for all (ip_forward, net/ipv4/ip_forward.c), nor does TCP take it (tcp_v4_rcv).
      if (expression.key === 'pkttype') return { kind: 'cannot tell', about: 'meta pkttype set' };
      if (expression.key === 'mark') packet.mark = registers.read(expression.from, 4);
      return undefined;
    case 'ct-set': {
      const { connection } = packet;
      if (expression.key === 'zone') return { kind: 'cannot tell', about: 'ct zone set' };
      if (connection !== undefined && connection !== 'untracked') connection.mark = registers.read(expression.from, 4);
      return undefined;
    }
    case 'payload-set':
      return alterHeader(expression, rule.table, registers, situation);
    case 'notrack':
      // nft_notrack_eval leaves alone what is tracked already.
      packet.connection ??= 'untracked';
      return undefined;
    case 'nat':
    case 'masquerade':
    case 'redirect':
      return translateBy(expression, registers, packet, host);
    case 'reject':
      return { kind: 'reject', how: refusalText(expression, nftFamily(packet.family)) };
    case 'limit':
      return goOnIf(undefined, `limit rate ${expression.rate}/${expression.unit}`, choose);
    case 'dynset':
      remember(expression, rule, registers, situation);
      // Elements are added and refreshed without a word; what is evaluated for each of them decides, if it is more than a counter.
      return isLimited(expression) ||
        isLimited(situation.rules.getSet({ kind: 'set', family: rule.family, table: rule.table, name: expression.set }))
        ? goOnIf(undefined, `a limit for each element of @${expression.set}`, choose)
        : undefined;
    case 'counter':
    case 'log':
    case 'objref':
      return undefined;
    case 'match':
      return passes(situation.extensions.get(expression)!, situation) ? undefined : NO_MATCH;
    case 'target': {
      const outcome = applyTarget(situation.extensions.get(expression)!, situation);
      return outcome.kind === 'continue' ? undefined : outcome;
    }
    case 'unknown': {
      const known = evaluateUnmodelled(expression, registers, situation);
      if (known) return known.effect;
      if (WITHOUT_EFFECT.has(expression.name)) return undefined;
      if (!LOADING_OR_ENDING.has(expression.name))
        return { kind: 'cannot tell', about: `expression "${expression.name}"` };
      registers.forget(`expression "${expression.name}"`);
      return goOnIf(undefined, `expression "${expression.name}"`, choose);
    }
  }
}

/** What the model does not have, and asks for something that this packet has nothing to do with; undefined: that is not known. */
function evaluateUnmodelled(
  expression: UnknownExpression,
  registers: Registers,
  { packet, facts }: NftSituation,
): { readonly effect: Effect } | undefined {
  // nft_xfrm_get_eval, net/netfilter/nft_xfrm.c.
  if (expression.name === 'xfrm' && facts.isIpsecIdle?.()) return { effect: NO_MATCH };
  const header = readExtensionHeader(expression);
  if (header?.of !== packet.family) return undefined;
  // No packet of an ordinary connection has one (nft_exthdr_ipv6_eval, nft_exthdr_ipv4_eval, net/netfilter/nft_exthdr.c).
  const value = header.present ? KnownBytes.of(Uint8Array.of(0)) : 'nothing';
  return { effect: load(registers, header, 'a header', value) };
}

/** What fills registers; only a field that the packet does not have ends the rule. */
function evaluateLoad(expression: LoadExpression, registers: Registers, situation: NftSituation): Effect {
  const { packet, host, choose } = situation;
  switch (expression.kind) {
    case 'payload':
      return load(
        registers,
        expression,
        `${expression.base} header, byte ${expression.offset}`,
        loadPayload(expression, packet),
      );
    case 'meta': {
      const value = expression.key === 'ipsec' ? loadIpsec(situation) : loadMeta(expression, packet);
      return load(registers, expression, `meta ${expression.key}`, value);
    }
    case 'ct':
      return load(registers, expression, `ct ${expression.key}`, loadCt(expression, packet));
    case 'fib':
      return load(registers, expression, `fib ${expression.result}`, loadFib(expression, packet, host));
    case 'rt':
      if (expression.key === 'ipsec') return load(registers, expression, 'rt ipsec', loadIpsec(situation));
      return load(registers, expression, 'rt nexthop', KnownBytes.unknown(addressBits(packet.family) / 8));
    case 'immediate':
      return load(registers, expression, 'a constant', KnownBytes.of(expression.data));
    case 'jhash': {
      const value = hashOf(expression, registers, packet, choose, MOST_OPTIONS);
      return load(registers, expression, `jhash mod ${expression.modulus}`, value);
    }
    case 'numgen': {
      const { mode, modulus, offset = 0 } = expression;
      const about = `numgen ${mode} mod ${modulus}`;
      if (modulus > MOST_OPTIONS) return load(registers, expression, about, KnownBytes.unknown(4));
      const number = choose(mode === 'inc' ? 'turn' : 'chance', about, modulus);
      return load(registers, expression, about, KnownBytes.of(hostOrder32(offset + number)));
    }
    case 'bitwise': {
      const { from, mask, xor } = expression;
      const value = registers.read(from, mask.length).masked(mask, xor);
      return load(registers, expression, registers.unknownPart(from, mask.length), value);
    }
    case 'byteorder': {
      const { from, length, size } = expression;
      const value = registers.read(from, length).reversed(size);
      return load(registers, expression, registers.unknownPart(from, length), value);
    }
    case 'shift':
      return load(registers, expression, 'a shifted value', KnownBytes.unknown(expression.length));
  }
}

/** Whether IPsec has unwrapped the packet, or is to wrap it. */
function loadIpsec({ facts }: NftSituation): KnownBytes {
  return facts.isIpsecIdle?.() ? KnownBytes.of(Uint8Array.of(0)) : KnownBytes.unknown(1);
}

function outcomeOf(verdict: Verdict): Outcome {
  return 'chain' in verdict ? verdict : verdict.kind === 'break' ? NO_MATCH : { kind: verdict.kind };
}

function load(
  registers: Registers,
  { to }: { readonly to: number },
  about: string,
  value: KnownBytes | 'nothing',
): Effect {
  if (value === 'nothing') return NO_MATCH;
  registers.write(to, value, about);
  return undefined;
}

function lookUp(
  expression: Extract<Expression, { kind: 'lookup' }>,
  { family, table }: NftRule,
  registers: Registers,
  { rules, choose, packet }: NftSituation,
): Effect {
  const { set: name, from, to, invert = false } = expression;
  const set = rules.getSet({ kind: 'set', family, table, name });
  if (!set) return { kind: 'cannot tell', about: `set ${name}, which cannot be read` };
  const found = findElement(
    set,
    (length) => registers.read(from, length),
    (key) => (isChangedBefore(set, rules, packet) ? undefined : askFor(set, key, rules, packet)),
  );
  if (found.kind === 'cannot tell') {
    const about = `${registers.unknownPart(from, found.length)} in @${name}`;
    // Of a set the answer is yes or no; of a map it could be any of its values.
    return to === undefined ? goOnIf(undefined, about, choose) : { kind: 'cannot tell', about };
  }
  const { element } = found;
  if ((element !== undefined) === invert) return NO_MATCH;
  // nft_lookup_eval evaluates what an element has besides.
  const limited =
    element && isLimited(set) ? goOnIf(undefined, `a limit for each element of @${name}`, choose) : undefined;
  if (limited) return limited;
  if (to === undefined || !element) return undefined;
  if (to === 'verdict') {
    const { verdict } = element;
    return verdict === undefined || verdict.kind === 'continue' ? undefined : outcomeOf(verdict);
  }
  registers.write(to, KnownBytes.of(element.data ?? new Uint8Array()), `a value of @${name}`);
  return undefined;
}

/** Whether more than counters is evaluated for elements. */
function isLimited(of: { readonly expressions?: readonly Expression[] | undefined } | undefined): boolean {
  return of?.expressions?.some(({ kind }) => kind !== 'counter') === true;
}

/** Goes on with the rule if it is so; where nobody can tell, both ways are walked. */
function goOnIf(holds: boolean | undefined, about: string, choose: Choose): Effect {
  const goesOn = holds ?? choose('unknown', about, 2) === 0;
  return goesOn ? undefined : NO_MATCH;
}

function compare(value: KnownBytes, op: '==' | '!=' | '<' | '<=' | '>' | '>=', data: Uint8Array): boolean | undefined {
  if (op === '==') return value.equals(data);
  if (op === '!=') return negate(value.equals(data));
  const order = value.compare(data);
  if (order === undefined) return undefined;
  return { '<': order < 0, '<=': order <= 0, '>': order > 0, '>=': order >= 0 }[op];
}

function negate(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

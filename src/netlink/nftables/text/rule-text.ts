import type {
  DynsetExpression,
  Expression,
  LoadExpression,
  LookupExpression,
  PayloadExpression,
  PayloadSetExpression,
  Verdict,
} from '../expression/expression.ts';
import type { Register } from '../expression/register.ts';
import { type DatatypeName, typeLength } from '../object/datatypes.ts';
import type { NftFamily, NftSet } from '../object/model.ts';
import { ctText, fibText, metaText, packetContext, payloadText, rtText } from './load-text.ts';
import { natText } from './nat-text.ts';
import { type Operand, operandText, Registers } from './registers.ts';
import { expressionFields, limitText, logText, rejectText } from './statement-text.ts';
import { hexText, prefixLength, rangeText, timeText, valueText } from './value-text.ts';

/** What is known of the sets of a table: undefined for one that nobody has seen. */
export type SetLookup = (name: string) => Pick<NftSet, 'key' | 'data'> | undefined;

const NO_SETS: SetLookup = () => undefined;

/**
 * A rule as `nft list` prints it, without its comment; counters without what they counted. What `nft` has no text for stands
 * in brackets, by the name of the expression and its fields.
 *
 * @param family of the table, which decides what goes without saying
 * @param sets of the table; without them the keys of look-ups are guessed from what was loaded before
 */
export function ruleText(expressions: readonly Expression[], family: NftFamily, sets: SetLookup = NO_SETS): string {
  const writer = new RuleWriter(family, sets);
  for (const expression of expressions) writer.add(expression);
  return writer.text();
}

/** `jump services` */
export function verdictText(verdict: Verdict): string {
  return 'chain' in verdict ? `${verdict.kind} ${verdict.chain}` : verdict.kind;
}

class RuleWriter {
  readonly #family: NftFamily;
  readonly #sets: SetLookup;
  readonly #registers = new Registers();
  readonly #context: ReturnType<typeof packetContext>;
  readonly #statements: (string | undefined)[] = [];
  /** Where a comparison stands that goes without saying once a field of the protocol is named. */
  readonly #implied = new Map<'network' | 'transport', number>();

  constructor(family: NftFamily, sets: SetLookup) {
    this.#family = family;
    this.#sets = sets;
    this.#context = packetContext(family);
  }

  text(): string {
    return this.#statements.filter((statement) => statement !== undefined).join(' ');
  }

  /** What the expression does, as the statement that `nft` has for it; what it loads is named where it is used. */
  add(expression: Expression): void {
    const registers = this.#registers;
    switch (expression.kind) {
      case 'payload':
      case 'meta':
      case 'ct':
      case 'fib':
      case 'rt':
      case 'numgen':
      case 'jhash':
      case 'immediate':
      case 'bitwise':
      case 'shift':
      case 'byteorder':
        registers.set(expression.to, this.#loaded(expression));
        break;
      case 'cmp':
        this.#compare(registers.get(expression.from), expression.op, expression.data);
        break;
      case 'range': {
        const operand = registers.get(expression.from);
        const range = rangeText(operand.type, expression.first, expression.last);
        this.#say(`${operandText(operand)} ${expression.op === '!=' ? '!= ' : ''}${range}`);
        break;
      }
      case 'lookup':
        this.#lookUp(expression);
        break;
      case 'dynset':
        this.#say(this.#dynsetText(expression));
        break;
      case 'payload-set':
        this.#assign(this.#field(expression), expression.from);
        break;
      case 'meta-set': {
        const { text, type } = metaText(expression.key);
        this.#assign({ text: `meta ${text.replace(/^meta /, '')}`, type }, expression.from);
        break;
      }
      case 'ct-set':
        this.#assign(ctText(expression), expression.from);
        break;
      case 'nat':
      case 'masquerade':
      case 'redirect':
        this.#say(natText(expression, registers, this.#family));
        break;
      case 'reject':
        if (expression.type === 'tcp-reset') this.#dropImplied('transport');
        this.#say(rejectText(expression, this.#family, this.#context.network));
        break;
      case 'verdict':
        this.#say(verdictText(expression.verdict));
        break;
      case 'counter':
      case 'notrack':
        this.#say(expression.kind);
        break;
      case 'limit':
        this.#say(limitText(expression));
        break;
      case 'log':
        this.#say(logText(expression));
        break;
      case 'objref':
        this.#say(`counter name "${expression.name}"`);
        break;
      case 'match':
      case 'target':
        this.#say(`xt ${expression.kind} "${expression.name}"`);
        break;
      case 'unknown':
        this.#say(expressionFields(expression));
        break;
      default:
        expression satisfies never;
    }
  }

  /** What an expression puts into its register. */
  #loaded(expression: LoadExpression): Operand {
    const registers = this.#registers;
    switch (expression.kind) {
      case 'payload':
        return this.#field(expression);
      case 'meta':
        return metaText(expression.key);
      case 'ct':
        return ctText(expression);
      case 'fib':
        return fibText(expression);
      case 'rt':
        return rtText(expression.key);
      case 'numgen': {
        const { mode, modulus, offset } = expression;
        return { text: `numgen ${mode} mod ${modulus}${offsetText(offset)}`, type: 'integer', words: 1 };
      }
      case 'jhash': {
        const { from, length, modulus, seed, offset } = expression;
        const key = registers.concatenation(from, Math.ceil(length / 4));
        const seeded = seed === undefined ? '' : ` seed 0x${seed.toString(16)}`;
        return { text: `jhash ${key} mod ${modulus}${seeded}${offsetText(offset)}`, type: 'integer', words: 1 };
      }
      case 'immediate': {
        const { data } = expression;
        return { text: hexText(data), type: 'unknown', words: Math.ceil(data.length / 4), constant: data };
      }
      case 'bitwise': {
        const { mask, xor } = expression;
        return { ...registers.get(expression.from), bits: { mask, xor } };
      }
      case 'shift': {
        const operand = registers.get(expression.from);
        const sign = expression.direction === 'left' ? '<<' : '>>';
        return { ...operand, text: `${operandText(operand)} ${sign} ${expression.bits}` };
      }
      case 'byteorder': {
        const operand = registers.get(expression.from);
        return { ...operand, type: operand.type === 'integer' ? 'network_integer' : operand.type };
      }
    }
  }

  /** A field of a header. Its name may say which protocol the header has, which then need not be said before. */
  #field(expression: PayloadExpression | PayloadSetExpression): Operand {
    const { implies, ...operand } = payloadText(expression, this.#context);
    if (implies) this.#dropImplied(implies);
    return operand;
  }

  #assign({ text, type }: Pick<Operand, 'text' | 'type'>, from: Register): void {
    this.#say(`${text} set ${operandText(this.#registers.get(from), type)}`);
  }

  #say(statement: string): void {
    this.#statements.push(statement);
  }

  #dropImplied(layer: 'network' | 'transport'): void {
    const index = this.#implied.get(layer);
    if (index !== undefined) this.#statements[index] = undefined;
    this.#implied.delete(layer);
  }

  #compare(operand: Operand, op: string, data: Uint8Array): void {
    const { text, type, bits } = operand;
    const value = valueText(type, data);
    const sign = op === '==' ? '' : `${op} `;
    if (!bits) {
      if (op === '==') this.#learn(text, value);
      this.#say(`${operandText(operand)} ${sign}${value}`);
      return;
    }
    const isZero = data.every((byte) => byte === 0);
    if ((type === 'ct_state' || type === 'ct_status') && isZero) {
      this.#say(`${text} ${op === '==' ? '! ' : ''}${valueText(type, bits.mask)}`);
      return;
    }
    const length = prefixLength(bits.mask);
    if ((type === 'ipv4_addr' || type === 'ipv6_addr') && length !== undefined) {
      this.#say(`${text} ${sign}${value}${length === bits.mask.length * 8 ? '' : `/${length}`}`);
      return;
    }
    this.#say(`${operandText(operand)} ${op} ${value}`);
  }

  /** Notes what a comparison that holds says about the packet. */
  #learn(text: string, value: string): void {
    if (text === 'meta l4proto' && /^(tcp|udp|sctp|dccp|udplite)$/.test(value)) {
      this.#context.transport = value;
      this.#implied.set('transport', this.#statements.length);
    } else if (text === 'meta nfproto' && (value === 'ipv4' || value === 'ipv6')) {
      this.#context.network = value === 'ipv4' ? 'ip' : 'ip6';
      this.#implied.set('network', this.#statements.length);
    }
  }

  #lookUp({ set: name, from, to, invert }: LookupExpression): void {
    const set = this.#sets(name);
    const key = this.#registers.concatenation(from, set && wordsOf(set.key), set?.key);
    if (to === undefined) this.#say(`${key} ${invert ? '!= ' : ''}@${name}`);
    else if (to === 'verdict') this.#say(`${key} vmap @${name}`);
    else {
      const data = set?.data === 'verdict' ? undefined : set?.data;
      const type = data?.[0] ?? 'unknown';
      const words = (data && wordsOf(data)) ?? 1;
      this.#registers.set(to, { text: `${key} map @${name}`, type, words, isMapped: true });
    }
  }

  #dynsetText({ operation, set: name, key, data, timeoutMs, expressions = [] }: DynsetExpression): string {
    const set = this.#sets(name);
    const registers = this.#registers;
    const value = this.#dynsetValue(set, data);
    const parts = [registers.concatenation(key, set && wordsOf(set.key), set?.key)];
    if (timeoutMs) parts.push(`timeout ${timeText(timeoutMs)}`);
    if (expressions.length > 0) parts.push(ruleText(expressions, this.#family, this.#sets));
    if (value !== undefined) parts.push(`: ${value}`);
    return `${operation} @${name} { ${parts.join(' ')} }`;
  }

  #dynsetValue(set: ReturnType<SetLookup>, data: number | undefined): string | undefined {
    if (data === undefined) return undefined;
    const type = set?.data === 'verdict' ? undefined : set?.data;
    return this.#registers.concatenation(data, type && wordsOf(type), type);
  }
}

function offsetText(offset: number | undefined): string {
  return offset ? ` offset ${offset}` : '';
}

/** How many registers a key or value takes; undefined when its types are not known. */
function wordsOf(type: readonly DatatypeName[]): number | undefined {
  return type.length === 0 || type.includes('unknown') ? undefined : Math.ceil(typeLength(type) / 4);
}

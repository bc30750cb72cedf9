import type { Register } from '../expression/register.ts';
import { rangeText, type ValueType, valueText } from './value-text.ts';

// What a rule has in its registers while it is read, as text.

/** What an expression put into registers. */
export interface Operand {
  /** `ip daddr`; of a constant what it is by its type. */
  readonly text: string;
  readonly type: ValueType;
  /** How many registers it takes. */
  readonly words: number;
  /** Bytes that were loaded as they are. */
  readonly constant?: Uint8Array;
  /** (value & mask) ^ xor, of what `text` says. */
  readonly bits?: { readonly mask: Uint8Array; readonly xor: Uint8Array };
  /** The value of a map. */
  readonly isMapped?: boolean;
}

/**
 * The registers of a rule. Like `nft` it notes a value at its first register only: one that is longer leaves what was noted at
 * the next ones (netlink_set_register of its src/netlink_delinearize.c), so that rules read as `nft` prints them.
 */
export class Registers {
  readonly #operands: (Operand | undefined)[] = [];
  /** Loaded, and by no expression used yet. */
  readonly #fresh = new Set<Operand>();

  set(to: Register, operand: Operand): void {
    this.#operands[to] = operand;
    this.#fresh.add(operand);
  }

  /** What was put there; for what nobody put there an operand that says so. */
  get(from: Register): Operand {
    const operand = this.#operands[from];
    if (!operand) return { text: `[register ${from}]`, type: 'unknown', words: 1 };
    this.#fresh.delete(operand);
    return operand;
  }

  /**
   * The values from a register on, with dots between them.
   *
   * @param words how many registers; undefined: as many as hold values that were not used yet
   * @param types of constants among them, in their order
   */
  concatenation(from: Register, words: number | undefined, types: readonly ValueType[] = []): string {
    const texts: string[] = [];
    for (let at = from; words === undefined || at < from + words; ) {
      const operand = this.#operands[at];
      if (words === undefined && texts.length > 0 && !(operand && this.#fresh.has(operand))) break;
      const found = this.get(at);
      texts.push(operandText(found, types[texts.length]));
      at += found.words;
      if (!operand) break;
    }
    return texts.join(' . ');
  }
}

/** An operand where a value is wanted; `type` is what a constant is taken for. */
export function operandText({ text, type, constant, bits }: Operand, wanted?: ValueType): string {
  if (constant) return valueText(wanted ?? type, constant);
  if (!bits) return text;
  const { mask, xor } = bits;
  const value = (bytes: Uint8Array) => valueText(type, bytes);
  if (xor.every((byte) => byte === 0)) return `${text} & ${value(mask)}`;
  // (value & ~bits) ^ bits
  if (mask.every((byte, index) => (byte ^ 0xff) === xor[index])) return `${text} | ${value(xor)}`;
  if (mask.every((byte) => byte === 0xff)) return `${text} ^ ${value(xor)}`;
  return `${text} & ${value(mask)} ^ ${value(xor)}`;
}

/** Two constants, or one: the ends of a range. */
export function constantRange(first: Operand, last: Operand | undefined, type: ValueType): string {
  if (first.constant && last?.constant) return plainRange(type, first.constant, last.constant);
  return operandText(first, type) + (last ? `-${operandText(last, type)}` : '');
}

/** Both ends, also of what could be written as a block. */
function plainRange(type: ValueType, first: Uint8Array, last: Uint8Array): string {
  const text = rangeText(type, first, last);
  return text.includes('/') ? `${valueText(type, first)}-${valueText(type, last)}` : text;
}

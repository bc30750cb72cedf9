import type { Register } from '../../netlink/nftables/index.ts';
import { KnownBytes } from '../packet/index.ts';

const REGISTER_BYTES = 4;
const COUNT = 16;

/** The registers of a rule, and for each what it was loaded with, to be named where it is not known. */
export class Registers {
  /** Written in place: thousands of expressions are evaluated for one question. */
  readonly #all = KnownBytes.unknown(REGISTER_BYTES * COUNT);
  readonly #loaded = new Array<string>(COUNT).fill('nothing');

  /** Where something begins that is not 0, with its length. */
  readonly #notZero = new Map<Register, number>();

  read(from: Register, length: number): KnownBytes {
    const value = this.#all.slice(from * REGISTER_BYTES, length);
    return this.#notZero.get(from) === length ? value.notZero() : value;
  }

  /** @param about what is loaded, as `nft` writes it; left out, what is there stays said: a shift, a mask */
  write(to: Register, value: KnownBytes, about?: string): void {
    // The kernel fills the last register with zeros (nft_data_copy, include/net/netfilter/nf_tables.h).
    const count = Math.ceil(value.length / REGISTER_BYTES);
    const { bytes, known } = this.#all;
    const [at, end] = [to * REGISTER_BYTES, (to + count) * REGISTER_BYTES];
    bytes.fill(0, at, end);
    bytes.set(value.bytes, at);
    known.fill(0xff, at, end);
    known.set(value.known, at);
    for (let register = to; register < to + count; register++) this.#notZero.delete(register);
    if (value.isNotZero) this.#notZero.set(to, value.length);
    if (about !== undefined) this.#loaded.fill(about, to, to + count);
  }

  /** Nothing is known of any of them any more. @param about what may have written to them */
  forget(about: string): void {
    this.#notZero.clear();
    this.#all.bytes.fill(0);
    this.#all.known.fill(0);
    this.#loaded.fill(about);
  }

  /** Whether one of these registers was loaded with something of which the name begins so. */
  isOf(about: string, from: Register, length: number): boolean {
    const loaded = this.#loaded.slice(from, from + Math.ceil(length / REGISTER_BYTES));
    return loaded.some((one) => one.startsWith(about));
  }

  /** What the first register of these that is not known was loaded with. */
  unknownPart(from: Register, length: number): string {
    for (let register = from; register < from + Math.ceil(length / REGISTER_BYTES); register++) {
      if (!this.read(register, REGISTER_BYTES).isKnown) return this.#loaded[register]!;
    }
    return this.#loaded[from]!;
  }
}

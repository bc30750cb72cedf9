import type { NftElement } from '../../netlink/index.ts';

/**
 * Elements of one set by key and end of range, without a text for each: of 100,000 elements those alone would take longer
 * than all else.
 */
export class ElementIndex {
  readonly #elements: readonly NftElement[];
  /** Open addressing: indices into the elements, -1 where there is none. */
  readonly #table: Int32Array;

  constructor(elements: readonly NftElement[]) {
    this.#elements = elements;
    this.#table = new Int32Array(2 ** Math.ceil(Math.log2(elements.length * 2 + 1))).fill(-1);
    for (let index = 0; index < elements.length; index++) this.#table[this.#place(elements[index]!)] = index;
  }

  /** The index of the element with the key (and the end of range) of `wanted`; -1 when there is none. */
  find(wanted: Pick<NftElement, 'key' | 'keyEnd'>): number {
    return this.#table[this.#place(wanted)]!;
  }

  /** Where an element is in the table, or would be. */
  #place(wanted: Pick<NftElement, 'key' | 'keyEnd'>): number {
    const mask = this.#table.length - 1;
    for (let place = hash(wanted.key) & mask; ; place = (place + 1) & mask) {
      const index = this.#table[place]!;
      if (index < 0) return place;
      const { key, keyEnd } = this.#elements[index]!;
      if (sameBytes(key, wanted.key) && sameBytes(keyEnd, wanted.keyEnd)) return place;
    }
  }
}

/** Whether both are missing, or have the same bytes. */
export function sameBytes(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/** FNV-1a. */
function hash(bytes: Uint8Array): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < bytes.length; i++) value = Math.imul(value ^ bytes[i]!, 0x01000193);
  return value ^ (value >>> 15);
}

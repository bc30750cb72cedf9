import { hashBytes, sameBytes } from '../../../core/index.ts';
import type { NftElement } from '../../../netlink/nftables/index.ts';

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
    for (let place = hashBytes(wanted.key) & mask; ; place = (place + 1) & mask) {
      const index = this.#table[place]!;
      if (index < 0) return place;
      const { key, keyEnd } = this.#elements[index]!;
      if (sameBytes(key, wanted.key) && sameBytes(keyEnd, wanted.keyEnd)) return place;
    }
  }
}

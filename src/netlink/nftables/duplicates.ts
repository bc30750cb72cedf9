import { hashBytes, sameBytes } from '../../core/index.ts';
import type { NftElement } from './object/model.ts';

/**
 * Whether an element is listed twice.
 *
 * A hash table without a size grows and shrinks in the background. The kernel finds its place in a listing by counting, so
 * that while elements move, some are told twice and as many others not at all, and nothing else gives it away (seen on
 * Linux 6.18 right after 100,000 elements were added).
 *
 * An open hash table of numbers instead of a Set of strings: a tenth of the time for 100,000 elements.
 */
export function hasDuplicates(elements: readonly NftElement[]): boolean {
  const mask = 2 ** Math.ceil(Math.log2(elements.length * 2 + 1)) - 1;
  const slots = new Int32Array(mask + 1).fill(-1);
  for (const [index, element] of elements.entries()) {
    let slot = hashBytes(element.key) & mask;
    for (; slots[slot] !== -1; slot = (slot + 1) & mask) {
      if (same(elements[slots[slot]!]!, element)) return true;
    }
    slots[slot] = index;
  }
  return false;
}

function same(a: NftElement, b: NftElement): boolean {
  return (
    sameBytes(a.key, b.key) &&
    a.intervalEnd === b.intervalEnd &&
    a.catchAll === b.catchAll &&
    sameBytes(a.keyEnd, b.keyEnd)
  );
}

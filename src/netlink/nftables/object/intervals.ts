import type { NftElement } from './model.ts';

/** A range of keys of one field in a set with the flag `interval`, both ends included, in network byte order. */
export interface KeyRange extends Omit<NftElement, 'key' | 'keyEnd' | 'intervalEnd' | 'expirationMs'> {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

/** The ranges in what was listed of a set of one field with the flag `interval`, in ascending order. */
export function intervalRanges(elements: readonly NftElement[]): KeyRange[] {
  const sorted = [...elements].sort(
    (a, b) => Buffer.compare(a.key, b.key) || Number(b.intervalEnd ?? false) - Number(a.intervalEnd ?? false),
  );
  return sorted.flatMap((element, index) => {
    const { key: first, keyEnd: _end, intervalEnd, ...rest } = element;
    if (intervalEnd) return [];
    const next = sorted[index + 1];
    const last = next ? decrement(next.key) : new Uint8Array(first.length).fill(0xff);
    return [{ first, last, ...rest }];
  });
}

function decrement(key: Uint8Array): Uint8Array {
  const previous = Uint8Array.from(key);
  for (let i = previous.length - 1; i >= 0; i--) {
    previous[i]!--;
    if (previous[i] !== 0xff) break;
  }
  return previous;
}

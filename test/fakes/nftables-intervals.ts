import type { KeyRange, NftElement } from '../../src/netlink/nftables/index.ts';

/**
 * The elements of ranges in a set of one field: for each one that begins it, and one behind its end. A range up to the very
 * last key has no end. Ranges must not overlap (EEXIST); of adjacent ones, the end of the first is the begin of the next,
 * which the kernel takes as it is.
 */
export function intervalElements(ranges: readonly KeyRange[]): NftElement[] {
  return ranges.flatMap(({ first, last, ...rest }) => {
    const behind = increment(last);
    return behind
      ? [
          { key: first, ...rest },
          { key: behind, intervalEnd: true },
        ]
      : [{ key: first, ...rest }];
  });
}

/** Undefined after the last one. */
function increment(key: Uint8Array): Uint8Array | undefined {
  const next = Uint8Array.from(key);
  for (let i = next.length - 1; i >= 0; i--) {
    next[i]!++;
    if (next[i] !== 0) return next;
  }
  return undefined;
}

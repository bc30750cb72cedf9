import { type Cidr, formatCidr } from '../../core/index.ts';
import type { BlockUse } from '../../pools/index.ts';

/**
 * Why a new pod finds no address although the node has ranges: a set of them, of each of which it gets one, has no free one left.
 *
 * @param sets as OwnRanges has them
 * @param use the addresses of a range that pods have, and could get
 * @returns words for people; empty: each set has a free one, or there is none at all
 */
export function fullRanges(sets: readonly (readonly Cidr[])[], use: (range: Cidr) => BlockUse): string {
  return sets
    .filter((set) => set.length > 0 && set.every((range) => use(range).free === 0))
    .map((set) => {
      const used = set.reduce((sum, range) => sum + use(range).used, 0);
      return `all ${used} addresses of ${set.map(formatCidr).join(', ')} are in use`;
    })
    .join('; ');
}

import { parseCidr } from '../../../core/index.ts';
import type { Pool } from '../../../pools/index.ts';
import type { OwnRanges } from '../pod-ranges.ts';

/**
 * What a node has of the cluster's pools: a pod gets an address of each family that there are pools of, or none at all, for it
 * would be taken for one of a cluster of one family.
 *
 * @param usable ranges that new pods may get addresses of
 * @param held all that pods may have addresses of
 * @param why in words, why nothing of a family is usable
 */
export function setsOfPools(
  pools: readonly Pool[],
  usable: readonly string[],
  held: readonly string[],
  why: (family: Pool['family']) => string,
): OwnRanges {
  const ranges = usable.map(parseCidr);
  const families = [...new Set(pools.map(({ family }) => family))];
  const sets = families.map((family) => ranges.filter(({ address }) => address.family === family));
  const missing = families.filter((_, index) => sets[index]!.length === 0);
  return {
    sets: missing.length > 0 ? [] : sets,
    lacking: missing.map(why).join('; '),
    held: held.map(parseCidr),
  };
}

import type { Drift } from '../../core/index.ts';
import { keyOf, type LinkNames, type RouteObject, type RouteOperation, textOf } from './route-object.ts';

/**
 * What the requests of a repair say about the kernel.
 *
 * @param present all that it holds
 * @param nameOf what links are called
 */
export function objectDrift(
  operations: readonly RouteOperation[],
  present: readonly RouteObject[],
  nameOf: LinkNames,
): Drift[] {
  const sides = new Map<string, { readonly ours: string[]; readonly theirs: string[] }>();
  const replaced = new Set<string>();
  for (const { action, object } of operations) {
    const key = keyOf(object);
    const side = sides.get(key) ?? { ours: [], theirs: [] };
    sides.set(key, side);
    (action === 'delete' ? side.theirs : side.ours).push(textOf(object, nameOf));
    if (action === 'replace') replaced.add(key);
  }
  if (replaced.size > 0) {
    for (const object of present) {
      const key = keyOf(object);
      if (replaced.has(key)) sides.get(key)!.theirs.push(textOf(object, nameOf));
    }
  }
  return [...sides].map(([object, { ours, theirs }]): Drift => {
    const difference = theirs.length === 0 ? 'missing' : ours.length === 0 ? 'unexpected' : 'changed';
    return { object, difference, ours, theirs };
  });
}

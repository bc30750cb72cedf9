import { editDistance } from '../../core/index.ts';

/** More than this many suggestions help nobody. */
const MOST = 3;

/** The names nearest to one that is not there, the nearest first: equal but for a few letters, or with one name inside the other. */
export function nearMisses(wanted: string, names: Iterable<string>): readonly string[] {
  const limit = Math.max(1, Math.floor(wanted.length / 4));
  const own = wanted.slice(wanted.indexOf('/') + 1);
  const found: { readonly name: string; readonly distance: number }[] = [];
  for (const name of names) {
    // The right name in another namespace is the commonest mistake of all.
    const sameName = name.slice(name.indexOf('/') + 1) === own;
    const distance = sameName ? 0 : editDistance(wanted, name, limit);
    if (distance <= limit) found.push({ name, distance });
  }
  found.sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1));
  return found.slice(0, MOST).map(({ name }) => name);
}

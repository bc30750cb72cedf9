import { compareText, editDistance, type Steps } from '../../core/index.ts';

/** More than this many suggestions help nobody. */
const MOST = 3;
/** Names to a step: one is done within a microsecond, and a step leaves a hundred bytes of garbage. */
const NAMES_A_STEP = 64;

/**
 * The names nearest to one that is not there, the nearest first: equal but for a few letters, or with one name inside the other.
 * Steps, because a cluster has ten thousand names.
 */
export function* nearMisses(wanted: string, names: Iterable<string>): Steps<readonly string[]> {
  let limit = Math.max(1, Math.floor(wanted.length / 4));
  const own = wanted.slice(wanted.indexOf('/') + 1);
  let compared = 0;
  const found: { readonly name: string; readonly distance: number }[] = [];
  for (const name of names) {
    // The right name in another namespace is the commonest mistake of all.
    const sameName = name.endsWith(own) && name.indexOf('/') + 1 + own.length === name.length;
    const distance = sameName ? 0 : editDistance(wanted, name, limit);
    if (distance <= limit) {
      found.push({ name, distance });
      found.sort((a, b) => a.distance - b.distance || compareText(a.name, b.name));
      // What is further away than all of them is not looked at any more.
      if (found.length > MOST) found.pop();
      if (found.length === MOST) limit = found[MOST - 1]!.distance;
    }
    if (++compared % NAMES_A_STEP === 0) yield;
  }
  return found.map(({ name }) => name);
}

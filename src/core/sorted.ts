/** Negative: a comes before b; 0: they are the same. */
export type Order<T> = (a: T, b: T) => number;

/** Puts an item in its place in a sorted list, instead of the one that is the same if there is one. */
export function insertSorted<T>(list: T[], item: T, order: Order<T>): void {
  const at = placeOf(list, item, order);
  const present = list[at];
  list.splice(at, present !== undefined && order(present, item) === 0 ? 1 : 0, item);
}

/** Takes the item that is the same as `item` out of a sorted list; nothing happens when there is none. */
export function removeSorted<T>(list: T[], item: T, order: Order<T>): void {
  const at = placeOf(list, item, order);
  const present = list[at];
  if (present !== undefined && order(present, item) === 0) list.splice(at, 1);
}

function placeOf<T>(list: readonly T[], item: T, order: Order<T>): number {
  return lowerBound(list, (other) => order(other, item) < 0);
}

/**
 * The index of the first item that does not come before the place looked for: by halves, so that a list of thousands costs a
 * dozen looks.
 *
 * @param isBefore true for the first items of the list and false for all others
 */
export function lowerBound<T>(list: readonly T[], isBefore: (item: T) => boolean): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(list[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** By UTF-16 units, as `<` compares. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The same texts in the same order. */
export function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

/**
 * A copy of a list that has been filled by `push`, without room to spare: V8 makes room for half as many again and sixteen more, and a
 * copy has as many slots as it has items. For lists that are kept by the hundred thousand.
 */
export function trimmed<T>(list: readonly T[]): T[] {
  return [...list];
}

/**
 * How many slots so many endpoints are given: a power of two, so that one more or one less rarely needs another chain.
 * More than half of the slots are taken.
 */
export function slotCapacity(endpoints: number): number {
  return endpoints === 0 ? 0 : 2 ** Math.ceil(Math.log2(endpoints));
}

/**
 * Gives each of `wanted` a slot 0 … n-1. What has a slot below n keeps it, so that few elements change: a new one goes
 * behind the others, and when one leaves, the one in the last slot takes its place.
 *
 * @param current what is in the slots now; undefined where nothing (that is known) is
 * @param idOf tells whether two are the same; unique among `wanted`
 */
export function assignSlots<T>(
  current: readonly (string | undefined)[],
  wanted: readonly T[],
  idOf: (item: T) => string,
): T[] {
  if (current.length === 0) return [...wanted];
  const slotOf = new Map<string, number>();
  for (let slot = 0; slot < current.length && slot < wanted.length; slot++) {
    const id = current[slot];
    if (id !== undefined) slotOf.set(id, slot);
  }
  const slots: (T | undefined)[] = wanted.map(() => undefined);
  const homeless: T[] = [];
  for (const item of wanted) {
    const slot = slotOf.get(idOf(item));
    if (slot === undefined) homeless.push(item);
    else slots[slot] = item;
  }
  let next = 0;
  return slots.map((item) => item ?? homeless[next++]!);
}

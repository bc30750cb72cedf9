/** One way through a walk: what was chosen on it, and what came of it. */
export interface Branch<T> {
  readonly result: T;
  readonly choices: readonly Choice[];
}

/** A point where a walk can go on in several ways. */
export interface Choice {
  /** `chance`: the kernel draws; `unknown`: one of them is true, and nobody here can tell which. */
  readonly kind: 'chance' | 'unknown';
  /** What decides: `numgen random mod 3`, `limit rate 5/second`. */
  readonly about: string;
  readonly options: number;
  /** From 0. */
  readonly taken: number;
}

/** Asks a walk which way it goes: a number from 0 to `options` - 1. */
export type Choose = (kind: Choice['kind'], about: string, options: number) => number;

/**
 * Walks all ways. The walk is an ordinary function that asks `choose` where it could go several ways; it is run anew for each
 * of them, so it must do the same whenever it is told the same.
 *
 * @param limit of the ways that are walked
 * @returns the ways in order; `complete` is false when there were more than `limit`
 */
export function walkAll<T>(
  walk: (choose: Choose) => T,
  limit: number,
): { readonly branches: readonly Branch<T>[]; readonly complete: boolean } {
  const branches: Branch<T>[] = [];
  let given: readonly number[] = [];
  while (branches.length < limit) {
    const choices: Choice[] = [];
    const told = given;
    const result = walk((kind, about, options) => {
      const taken = told[choices.length] ?? 0;
      choices.push({ kind, about, options, taken });
      return taken;
    });
    branches.push({ result, choices });
    const last = choices.findLastIndex(({ options, taken }) => taken + 1 < options);
    if (last < 0) return { branches, complete: true };
    given = choices.slice(0, last + 1).map(({ taken }, index) => (index === last ? taken + 1 : taken));
  }
  return { branches, complete: false };
}

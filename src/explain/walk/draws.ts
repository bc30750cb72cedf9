import type { Choose } from '../choices.ts';

/** What a draw among rules came to. */
interface Drawn {
  /** So many of the rules do not match. */
  readonly passed: number;
  /** Whether the one behind those does. */
  readonly isTaken: boolean;
}

/**
 * Rules in a row that ask for the same and then draw, each for itself, as those of kube-proxy do that spread connections: all of them
 * are one draw. Walked one by one, N of them would have N ways of up to N rules each.
 */
export class Draws<R> {
  readonly #askedBefore: (rule: R) => string | undefined;
  readonly #ends = new WeakMap<readonly R[], readonly number[]>();

  /** @param askedBefore all that a rule asks for besides its draw; undefined: it is none that matches by chance alone */
  constructor(askedBefore: (rule: R) => string | undefined) {
    this.#askedBefore = askedBefore;
  }

  /**
   * Draws among the rules from `at` on.
   *
   * @param holds whether what a rule asks for besides is so; false where that is not known
   * @returns undefined: there is only one, or none that can match
   */
  from(at: number, rules: readonly R[], holds: (rule: R) => boolean, choose: Choose): Drawn | undefined {
    const count = (this.#endsOf(rules)[at] ?? at) - at;
    if (count < 2 || !holds(rules[at]!)) return undefined;
    const passed = choose('chance', `which of ${count} rules`, count + 1);
    return { passed, isTaken: passed < count };
  }

  /** For each rule, the end of those that draw as it does. */
  #endsOf(rules: readonly R[]): readonly number[] {
    const known = this.#ends.get(rules);
    if (known) return known;
    const asked = rules.map(this.#askedBefore);
    const ends: number[] = asked.map((_, index) => index + 1);
    for (let index = rules.length - 2; index >= 0; index--) {
      if (asked[index] !== undefined && asked[index] === asked[index + 1]) ends[index] = ends[index + 1]!;
    }
    this.#ends.set(rules, ends);
    return ends;
  }
}

/** Chooses as ever, but for the draw of a rule that was taken. */
export function withDrawn(choose: Choose): Choose {
  return (kind, about, options) => (kind === 'chance' ? 0 : choose(kind, about, options));
}

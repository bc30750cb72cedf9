/** One way through a walk: what was chosen on it, and what came of it. */
export interface Branch<T> {
  readonly result: T;
  readonly choices: readonly Choice[];
}

/** A point where a walk can go on in several ways. */
export interface Choice {
  /**
   * `chance`: the kernel draws; `turn`: it counts the packets that come; `unknown`: one of them is true, and nobody
   * here can tell which.
   */
  readonly kind: 'chance' | 'turn' | 'unknown';
  /** What decides: `numgen random mod 3`, `limit rate 5/second`. */
  readonly about: string;
  readonly options: number;
  /** From 0. */
  readonly taken: number;
}

/** Asks a walk which way it goes: a number from 0 to `options` - 1. */
export type Choose = (kind: Choice['kind'], about: string, options: number) => number;

/** Where ways meet again that chance had parted: only the first one of those goes on. */
export interface Meeting {
  /** Counts a rule that was evaluated, see `Most`. */
  evaluated(): void;
  /** Whether ways that meet are one: then what differs by the rules alone need not be walked. */
  readonly isJoining: boolean;
  /** How many choices the walk has made so far. */
  readonly made: number;
  /**
   * Ends this way if another one has been here: where the walk is, and all that what is to come depends on.
   *
   * @param since ways meet that are the same up to this number of choices, and in all that is not known
   */
  at(since: number, state: () => string): void;
}

/** How much is walked. Of much work what was found is as good as ever, and that there is more is said. */
export interface Most {
  /** Ways that are begun. */
  readonly ways: number;
  /** Of all ways together, where a way is as much as so many rules. @default without end */
  readonly rules?: { readonly most: number; readonly perWay: number } | undefined;
}

/** Ends a walk from within. */
const HAS_MET = Symbol('has met another way');

/**
 * Walks all ways. The walk is an ordinary function that asks `choose` where it could go several ways; it is run anew for each
 * of them, so it must do the same whenever it is told the same.
 *
 * @returns the ways in order, of those that meet the first; `complete` is false when there were more than `most`
 */
export function walkAll<T>(
  walk: (choose: Choose, meeting: Meeting) => T,
  { ways, rules }: Most,
): { readonly branches: readonly Branch<T>[]; readonly complete: boolean } {
  const branches: Branch<T>[] = [];
  const met = new Set<string>();
  let given: readonly number[] = [];
  const done = { rules: 0 };
  for (let begun = 0; begun < ways; begun++) {
    if (rules && done.rules + begun * rules.perWay > rules.most) break;
    const choices: Choice[] = [];
    const told = given;
    const choose: Choose = (kind, about, options) => {
      const taken = told[choices.length] ?? 0;
      choices.push({ kind, about, options, taken });
      return taken;
    };
    try {
      branches.push({ result: walk(choose, meetingOf(choices, told.length, met, done)), choices });
    } catch (error) {
      if (error !== HAS_MET) throw error;
    }
    const last = choices.findLastIndex(({ options, taken }) => taken + 1 < options);
    if (last < 0) return { branches, complete: true };
    given = choices.slice(0, last + 1).map(({ taken }, index) => (index === last ? taken + 1 : taken));
  }
  return { branches, complete: false };
}

/**
 * @param told so many choices are repeated from the way before, which has been there
 * @param done on all ways
 */
function meetingOf(choices: readonly Choice[], told: number, met: Set<string>, done: { rules: number }): Meeting {
  let looked = 0;
  return {
    evaluated() {
      done.rules++;
    },
    isJoining: true,
    get made() {
      return choices.length;
    },
    at(since, state) {
      const { length } = choices;
      if (length === looked || length <= since) return;
      looked = length;
      if (length < told) return;
      const before = choices.slice(0, since).map(({ taken }) => taken);
      const unknown = choices.slice(since).filter(({ kind }) => kind === 'unknown');
      const id = [before.join(), ...unknown.map(({ about, taken }) => `${about} ${taken}`), state()].join('\0');
      if (met.has(id)) throw HAS_MET;
      met.add(id);
    },
  };
}

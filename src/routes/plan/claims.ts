import { insertSorted, lowerBound, type Order, removeSorted } from '../../core/index.ts';

/** Consecutive values of one length, such as the addresses of a range: byte strings in network order. */
export interface Span {
  readonly first: Uint8Array;
  /** Inclusive; as long as `first`. */
  readonly last: Uint8Array;
  /** What it is, for people: `pod CIDR 10.244.3.0/24`. */
  readonly what: string;
}

/** Somebody who wants values that only one may have. Its own spans do not overlap each other. */
export interface Claimant {
  readonly name: string;
  /** Milliseconds since 1970; Infinity when it is not known. */
  readonly createdAt: number;
  readonly spans: readonly Span[];
}

interface Held {
  readonly span: Span;
  readonly owner: Claimant;
}

interface Refusal {
  readonly reason: string;
  /** The claimant that has what this one wants; undefined: it is reserved. */
  readonly owner: string | undefined;
}

/**
 * Decides who has what several claim: the oldest, and of the same age the first by name. Whoever does not get all that it
 * claims gets nothing, and stands in nobody's way. Who is accepted depends on the claims alone, not on the order in which they
 * came.
 *
 * The work of a change depends on those whose claims overlap with it: what is held is disjoint, so a look into it is a search by
 * halves, and whoever was refused waits behind the one claimant that was the reason.
 */
export class Claims {
  #reserved: readonly Span[] = [];
  readonly #claimants = new Map<string, Claimant>();
  /** Disjoint, in the order of `byPlace`. */
  readonly #held: Held[] = [];
  readonly #refusals = new Map<string, Refusal>();
  /** By name, who was refused because of it. */
  readonly #waiting = new Map<string, Set<string>>();

  /** Undefined: it is accepted, or unknown. */
  refusalOf(name: string): string | undefined {
    return this.#refusals.get(name)?.reason;
  }

  /** The names of those refused, with the reason. */
  *refusals(): Iterable<readonly [name: string, reason: string]> {
    for (const [name, { reason }] of this.#refusals) yield [name, reason];
  }

  /** Claims for a name, in place of those it had. Returns the names for which it had to be decided anew. */
  set(claimant: Claimant): ReadonlySet<string> {
    const { name } = claimant;
    const freed = this.#release(name);
    this.#claimants.set(name, claimant);
    return this.#decide([claimant, ...freed]);
  }

  /** Gives up what a name claims. Returns the names for which it had to be decided anew. */
  remove(name: string): ReadonlySet<string> {
    const freed = this.#release(name);
    this.#claimants.delete(name);
    return this.#decide(freed);
  }

  /**
   * What nobody may have, in place of what was reserved before. Returns the names for which it had to be decided anew: whoever
   * was refused anything, and whoever has what is reserved now.
   */
  reserve(spans: readonly Span[]): ReadonlySet<string> {
    this.#reserved = spans;
    const names = new Set(this.#refusals.keys());
    for (const span of spans) for (const { owner } of this.#overlapping(span)) names.add(owner.name);
    // Those who waited for somebody in the list are in it themselves.
    for (const name of names) this.#release(name);
    return this.#decide([...names].map((name) => this.#claimants.get(name)!));
  }

  /** Whoever is decided about can only disturb those behind it, so that everybody is decided about once. */
  #decide(claimants: readonly Claimant[]): ReadonlySet<string> {
    const queue = [...claimants].sort(bySeniority);
    const decided = new Set<string>();
    for (let at = 0; at < queue.length; at++) {
      const claimant = queue[at]!;
      decided.add(claimant.name);
      for (const disturbed of this.#decideOne(claimant)) insertSorted(queue, disturbed, bySeniority);
    }
    return decided;
  }

  /** Returns those that have to be decided about again. */
  #decideOne(claimant: Claimant): Claimant[] {
    const { name, spans } = claimant;
    for (const span of spans) {
      const reserved = this.#reserved.find((other) => overlap(span, other));
      if (reserved) {
        this.#refusals.set(name, { reason: `its ${span.what} overlaps the ${reserved.what}`, owner: undefined });
        return [];
      }
    }
    const rivals = new Set<Claimant>();
    for (const span of spans) {
      for (const { span: other, owner } of this.#overlapping(span)) {
        if (bySeniority(owner, claimant) < 0) {
          const relation = span.what === other.what ? 'is also that' : `overlaps the ${other.what}`;
          const reason = `its ${span.what} ${relation} of Node "${owner.name}", which is older`;
          this.#refusals.set(name, { reason, owner: owner.name });
          this.#waitersOf(owner.name).add(name);
          return [];
        }
        rivals.add(owner);
      }
    }
    const disturbed = [...rivals].flatMap((rival) => [rival, ...this.#release(rival.name)]);
    for (const span of spans) insertSorted(this.#held, { span, owner: claimant }, byPlace);
    return disturbed;
  }

  /** Forgets the decision about a name. Returns those who waited for it. */
  #release(name: string): Claimant[] {
    const claimant = this.#claimants.get(name);
    if (!claimant) return [];
    const refusal = this.#refusals.get(name);
    if (refusal) {
      this.#refusals.delete(name);
      if (refusal.owner !== undefined) this.#leaveQueueOf(refusal.owner, name);
      return [];
    }
    for (const span of claimant.spans) removeSorted(this.#held, { span, owner: claimant }, byPlace);
    const waiters = [...this.#waitersOf(name)];
    this.#waiting.delete(name);
    return waiters.map((waiter) => {
      this.#refusals.delete(waiter);
      return this.#claimants.get(waiter)!;
    });
  }

  #overlapping({ first, last }: Span): readonly Held[] {
    const from = lowerBound(this.#held, ({ span }) => compareValues(span.last, first) < 0);
    let to = from;
    while (to < this.#held.length && compareValues(this.#held[to]!.span.first, last) <= 0) to++;
    return this.#held.slice(from, to);
  }

  #waitersOf(name: string): Set<string> {
    let waiters = this.#waiting.get(name);
    if (!waiters) {
      waiters = new Set();
      this.#waiting.set(name, waiters);
    }
    return waiters;
  }

  #leaveQueueOf(owner: string, name: string): void {
    const waiters = this.#waitersOf(owner);
    waiters.delete(name);
    if (waiters.size === 0) this.#waiting.delete(owner);
  }
}

const bySeniority: Order<Claimant> = (a, b) => {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
};

const byPlace: Order<Held> = (a, b) => compareValues(a.span.first, b.span.first);

function overlap(a: Span, b: Span): boolean {
  return compareValues(a.first, b.last) <= 0 && compareValues(b.first, a.last) <= 0;
}

/** By length, then as numbers: values of different lengths never lie between each other. */
function compareValues(a: Uint8Array, b: Uint8Array): number {
  if (a.length !== b.length) return a.length - b.length;
  // Buffer.compare takes several times as long for so few bytes.
  for (let at = 0; at < a.length; at++) if (a[at] !== b[at]) return a[at]! - b[at]!;
  return 0;
}

import { insertSorted, type Order } from '../../core/index.ts';
import { type Block, compareBlocks, DisjointBlocks } from './blocks.ts';

/** Values that somebody wants for itself alone, or that nobody may have. */
export interface Span extends Block {
  /** What it is, for people: `pod CIDR 10.244.3.0/24`. */
  readonly what: string;
  /** Undefined: it is reserved. */
  readonly owner: Claimant | undefined;
}

/** Somebody who wants values that only one may have. Its own spans do not overlap each other. */
export interface Claimant {
  readonly name: string;
  /** Milliseconds since 1970; Infinity when it is not known. */
  readonly createdAt: number;
  readonly spans: readonly Span[];
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
  readonly #held = new DisjointBlocks<Span>();
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
  set(claimant: Claimant): readonly string[] {
    const { name } = claimant;
    const freed = this.#release(name);
    this.#claimants.set(name, claimant);
    return this.#decide([claimant, ...freed]);
  }

  /** Gives up what a name claims. Returns the names for which it had to be decided anew. */
  remove(name: string): readonly string[] {
    const freed = this.#release(name);
    this.#claimants.delete(name);
    return this.#decide(freed);
  }

  /**
   * What nobody may have, in place of what was reserved before. Returns the names for which it had to be decided anew: whoever
   * was refused anything, and whoever has what is reserved now.
   */
  reserve(spans: readonly Span[]): readonly string[] {
    this.#reserved = spans;
    const names = new Set(this.#refusals.keys());
    for (const span of spans) for (const { owner } of this.#held.overlapping(span)) names.add(owner!.name);
    // Those who waited for somebody in the list are in it themselves.
    for (const name of names) this.#release(name);
    return this.#decide([...names].map((name) => this.#claimants.get(name)!));
  }

  /** Whoever is decided about can only disturb those behind it, so that everybody is decided about once. */
  #decide(claimants: readonly Claimant[]): readonly string[] {
    const queue = [...claimants].sort(bySeniority);
    for (let at = 0; at < queue.length; at++) {
      for (const disturbed of this.#decideOne(queue[at]!)) insertSorted(queue, disturbed, bySeniority);
    }
    return queue.map(({ name }) => name);
  }

  /** Returns those that have to be decided about again. */
  #decideOne(claimant: Claimant): readonly Claimant[] {
    const { name, spans } = claimant;
    for (const span of spans) {
      const reserved = this.#reserved.find((other) => compareBlocks(span, other) === 0);
      if (reserved) {
        this.#refusals.set(name, { reason: `its ${span.what} overlaps the ${reserved.what}`, owner: undefined });
        return NOBODY;
      }
    }
    if (this.#hold(spans)) return NOBODY;
    const rivals = new Set<Claimant>();
    for (const span of spans) {
      for (const { what, owner } of this.#held.overlapping(span)) {
        if (bySeniority(owner!, claimant) < 0) {
          const relation = span.what === what ? 'is also that' : `overlaps the ${what}`;
          const reason = `its ${span.what} ${relation} of Node "${owner!.name}", which is older`;
          this.#refusals.set(name, { reason, owner: owner!.name });
          this.#waitersOf(owner!.name).add(name);
          return NOBODY;
        }
        rivals.add(owner!);
      }
    }
    const disturbed = [...rivals].flatMap((rival) => [rival, ...this.#release(rival.name)]);
    this.#hold(spans);
    return disturbed;
  }

  /** False, and nothing is held, when somebody has any of them. */
  #hold(spans: readonly Span[]): boolean {
    for (const [at, span] of spans.entries()) {
      if (this.#held.add(span)) continue;
      for (const held of spans.slice(0, at)) this.#held.remove(held);
      return false;
    }
    return true;
  }

  /** Forgets the decision about a name. Returns those who waited for it. */
  #release(name: string): readonly Claimant[] {
    const claimant = this.#claimants.get(name);
    if (!claimant) return NOBODY;
    const refusal = this.#refusals.get(name);
    if (refusal) {
      this.#refusals.delete(name);
      if (refusal.owner !== undefined) this.#leaveQueueOf(refusal.owner, name);
      return NOBODY;
    }
    for (const span of claimant.spans) this.#held.remove(span);
    const waiters = this.#waiting.get(name);
    if (!waiters) return NOBODY;
    this.#waiting.delete(name);
    return [...waiters].map((waiter) => {
      this.#refusals.delete(waiter);
      return this.#claimants.get(waiter)!;
    });
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

const NOBODY: readonly Claimant[] = [];

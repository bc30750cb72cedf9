import { compareText, insertSorted, type Order } from '../../core/index.ts';
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
  /** Of all claimants no other has it. */
  readonly name: string;
  /** The Node that it stands for: several may stand for one. */
  readonly node: string;
  /** Milliseconds since 1970; Infinity when it is not known. */
  readonly createdAt: number;
  readonly spans: readonly Span[];
}

interface Refusal {
  readonly reason: string;
  /** The claimant that has what this one wants; undefined: it is reserved. */
  readonly owner: Claimant | undefined;
}

/**
 * Decides who has what several claim: the oldest, and of the same age the first by name. Whoever does not get all that it
 * claims gets nothing, and stands in nobody's way. Who is accepted depends on the claims alone, not on the order in which they
 * came.
 *
 * The work of a change depends on those whose claims overlap with it: what is held is disjoint, so a look into it is a search by
 * halves, and whoever was refused waits behind the one claimant that was the reason. Who claims what is known by whoever asks:
 * thousands that all get what they claim need no list of their own.
 */
export class Claims {
  #reserved: readonly Span[] = [];
  readonly #held = new DisjointBlocks<Span>();
  readonly #refusals = new Map<Claimant, Refusal>();
  /** Who was refused because of a claimant. */
  readonly #waiting = new Map<Claimant, Set<Claimant>>();

  /** Undefined: it is accepted, or unknown. */
  refusalOf(claimant: Claimant): string | undefined {
    return this.#refusals.get(claimant)?.reason;
  }

  /** Those refused. */
  refused(): Iterable<Claimant> {
    return this.#refusals.keys();
  }

  /** Claims, in place of those of `before`, if there were any. Returns for whom it had to be decided anew. */
  set(claimant: Claimant, before?: Claimant): readonly Claimant[] {
    const freed = before ? this.#release(before) : NOBODY;
    return this.#decide([claimant, ...freed]);
  }

  /** Gives up what somebody claims who has claimed. Returns for whom it had to be decided anew. */
  remove(claimant: Claimant): readonly Claimant[] {
    return this.#decide([...this.#release(claimant)]);
  }

  /**
   * What nobody may have, in place of what was reserved before. Returns for whom it had to be decided anew: whoever was refused
   * anything, and whoever has what is reserved now.
   */
  reserve(spans: readonly Span[]): readonly Claimant[] {
    this.#reserved = spans;
    const concerned = new Set(this.#refusals.keys());
    for (const span of spans) for (const { owner } of this.#held.overlapping(span)) concerned.add(owner!);
    // Those who waited for somebody in the list are in it themselves.
    for (const claimant of concerned) this.#release(claimant);
    return this.#decide([...concerned]);
  }

  /** Whoever is decided about can only disturb those behind it, so that everybody is decided about once. */
  #decide(queue: Claimant[]): readonly Claimant[] {
    queue.sort(bySeniority);
    for (let at = 0; at < queue.length; at++) {
      for (const disturbed of this.#decideOne(queue[at]!)) insertSorted(queue, disturbed, bySeniority);
    }
    return queue;
  }

  /** Returns those that have to be decided about again. */
  #decideOne(claimant: Claimant): readonly Claimant[] {
    const { spans } = claimant;
    for (const span of spans) {
      const reserved = this.#reservedOf(span);
      if (reserved) {
        this.#refusals.set(claimant, { reason: `its ${span.what} overlaps the ${reserved.what}`, owner: undefined });
        return NOBODY;
      }
    }
    if (this.#hold(spans)) return NOBODY;
    const rivals = new Set<Claimant>();
    for (const span of spans) {
      for (const { what, owner } of this.#held.overlapping(span)) {
        if (bySeniority(owner!, claimant) < 0) {
          const relation = span.what === what ? 'is also that' : `overlaps the ${what}`;
          const why = owner!.createdAt < claimant.createdAt ? 'is older' : 'is as old and comes first by name';
          const reason = `its ${span.what} ${relation} of Node "${owner!.node}", which ${why}`;
          this.#refusals.set(claimant, { reason, owner });
          this.#waitersOf(owner!).add(claimant);
          return NOBODY;
        }
        rivals.add(owner!);
      }
    }
    const disturbed = [...rivals].flatMap((rival) => [rival, ...this.#release(rival)]);
    this.#hold(spans);
    return disturbed;
  }

  /** False, and nothing is held, when somebody has any of them. */
  #hold(spans: readonly Span[]): boolean {
    for (let at = 0; at < spans.length; at++) {
      if (this.#held.add(spans[at]!)) continue;
      for (const held of spans.slice(0, at)) this.#held.remove(held);
      return false;
    }
    return true;
  }

  #reservedOf(span: Span): Span | undefined {
    for (const reserved of this.#reserved) if (compareBlocks(span, reserved) === 0) return reserved;
    return undefined;
  }

  /** Forgets the decision about a claimant. Returns those who waited for it. */
  #release(claimant: Claimant): readonly Claimant[] {
    const refusal = this.#refusals.get(claimant);
    if (refusal) {
      this.#refusals.delete(claimant);
      if (refusal.owner) this.#leaveQueueOf(refusal.owner, claimant);
      return NOBODY;
    }
    for (const span of claimant.spans) this.#held.remove(span);
    const waiters = this.#waiting.get(claimant);
    if (!waiters) return NOBODY;
    this.#waiting.delete(claimant);
    for (const waiter of waiters) this.#refusals.delete(waiter);
    return [...waiters];
  }

  #waitersOf(claimant: Claimant): Set<Claimant> {
    let waiters = this.#waiting.get(claimant);
    if (!waiters) {
      waiters = new Set();
      this.#waiting.set(claimant, waiters);
    }
    return waiters;
  }

  #leaveQueueOf(owner: Claimant, claimant: Claimant): void {
    const waiters = this.#waitersOf(owner);
    waiters.delete(claimant);
    if (waiters.size === 0) this.#waiting.delete(owner);
  }
}

const bySeniority: Order<Claimant> = (a, b) => {
  if (a.createdAt !== b.createdAt) return a.createdAt < b.createdAt ? -1 : 1;
  return compareText(a.name, b.name);
};

const NOBODY: readonly Claimant[] = [];

import { LIMITS } from './limits.ts';

/**
 * Shares out the endpoints this node can hold. While all Services together want too many, each gets as many as
 * some cap, which is halved until what they get fits: the largest give, and a Service of ordinary size is not
 * touched by what others do. The cap depends on what is wanted, not on who came first.
 */
export class EndpointBudget {
  readonly #total: number;
  /** Falling; the first is what one Service may have at most anyway. */
  readonly #caps: readonly number[];
  /** By cap, what all Services together get under it. */
  readonly #sums: number[];

  constructor(total: number = LIMITS.endpointsOfNode, most: number = LIMITS.endpoints) {
    this.#total = total;
    const caps = [];
    for (let cap = most; cap >= 1; cap = Math.floor(cap / 2)) caps.push(cap);
    this.#caps = caps;
    this.#sums = caps.map(() => 0);
  }

  /** One Service wants so many endpoints x ports where it wanted `before`. */
  change(before: number, after: number): void {
    if (before === after) return;
    for (const [index, cap] of this.#caps.entries()) {
      this.#sums[index]! += Math.min(after, cap) - Math.min(before, cap);
    }
  }

  /** What a Service may have. With more Services than the total, one each. */
  get cap(): number {
    const index = this.#sums.findIndex((sum) => sum <= this.#total);
    return this.#caps[index] ?? 1;
  }
}

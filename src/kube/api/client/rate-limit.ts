import { type Clock, sleep } from '../../../core/index.ts';

export interface RateLimitOptions {
  /** Requests a second in the long run; 0 or less: no limit. */
  readonly qps: number;
  /** Requests that may go out at once after a pause; at least one may. */
  readonly burst: number;
  readonly clock: Clock;
}

/**
 * Holds requests back so that an API server is not asked more than so often: a bucket of `burst` tokens, of which `qps` a
 * second come back. Those that wait are served in their order.
 */
export class RateLimit {
  readonly #qps: number;
  readonly #burst: number;
  readonly #clock: Clock;
  /** Below zero, it is how many requests wait. */
  #tokens: number;
  #filledAt: number;

  constructor({ qps, burst, clock }: RateLimitOptions) {
    this.#qps = qps > 0 ? qps : Number.POSITIVE_INFINITY;
    this.#burst = Math.max(1, burst);
    this.#clock = clock;
    this.#tokens = this.#burst;
    this.#filledAt = clock.now();
  }

  /** Resolves when a request may go out, or when the signal aborts. Never rejects. */
  async wait(signal: AbortSignal): Promise<void> {
    if (this.#qps === Number.POSITIVE_INFINITY || signal.aborted) return;
    const now = this.#clock.now();
    const returned = Math.max(0, ((now - this.#filledAt) / 1000) * this.#qps);
    this.#tokens = Math.min(this.#burst, this.#tokens + returned) - 1;
    this.#filledAt = now;
    if (this.#tokens >= 0) return;
    await sleep(this.#clock, (-this.#tokens / this.#qps) * 1000, signal);
    // What is not asked after all is left to those that come later.
    if (signal.aborted) this.#tokens++;
  }
}

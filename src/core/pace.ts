export interface PaceOptions {
  /** As many as pass at once after a quiet time. */
  readonly atOnce: number;
  /** Time in which one more may pass. */
  readonly eachMs: number;
}

/**
 * Of what others destroy. It is repaired at once as a rule, a firewall that is reloaded takes a few transactions, and once a second
 * where somebody destroys it again and again. A fight is not won by speed, and each round costs both sides, and whoever else
 * writes rules, a processor.
 */
export const REPAIRS: PaceOptions = { atOnce: 3, eachMs: 1000 };

/** How often something is done that others give the reason for: at once as a rule, and at a fixed rate where they do not cease. */
export class Pace {
  readonly #options: PaceOptions;
  /** How many have passed, less what time has made good. */
  #spent = 0;
  #at = 0;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** How long the next one has to wait yet; 0: it may pass. */
  leftMs(now: number): number {
    const { atOnce, eachMs } = this.#options;
    return Math.max(0, Math.ceil((this.#spentBy(now) + 1 - atOnce) * eachMs));
  }

  /** One passes now. */
  passed(now: number): void {
    this.#spent = this.#spentBy(now) + 1;
    this.#at = now;
  }

  #spentBy(now: number): number {
    return Math.max(0, this.#spent - (now - this.#at) / this.#options.eachMs);
  }
}

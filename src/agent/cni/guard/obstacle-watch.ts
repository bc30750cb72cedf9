import type { Clock } from '../../../core/index.ts';
import type { Logger } from '../../logger.ts';

/** How long something has to be in the way to be told: firewalld, for one, has a table that drops everything while it reloads. */
const PASSING_MS = 3000;
/**
 * A look reads rules of others, for some milliseconds: it is this many times what it took from the next, and no longer
 * than needed to tell.
 */
const RESTS = 300;

/** What of other programs may drop packets of pods, and cannot be changed from here. */
export class ObstacleWatch {
  readonly #clock: Clock;
  readonly #logger: Logger;
  #found: ReadonlyMap<string, { readonly since: number; readonly told: boolean }> = new Map();
  #restsUntil = Number.NEGATIVE_INFINITY;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** What was told and is still there: a sentence each. */
  told(): string[] {
    return [...this.#found].flatMap(([reason, { told }]) => (told ? [reason] : []));
  }

  /**
   * Tells what is in the way: each once, until it is gone, and none that is there for a moment alone.
   *
   * @param look a sentence for each; undefined: it cannot be told now
   * @returns in how many milliseconds to come again; undefined: when there is a reason to
   */
  look(look: () => readonly string[] | undefined): number | undefined {
    const began = this.#clock.now();
    if (began < this.#restsUntil) return this.#restsUntil - began;
    const reasons = look();
    const now = this.#clock.now();
    this.#restsUntil = now + Math.min(RESTS * (now - began), PASSING_MS);
    if (!reasons) return undefined;
    this.#found = new Map(reasons.map((reason) => [reason, this.#seen(reason, now)]));
    const waiting = [...this.#found.values()].filter(({ told }) => !told).map(({ since }) => since + PASSING_MS - now);
    return waiting.length > 0 ? Math.min(...waiting) : undefined;
  }

  #seen(reason: string, now: number): { readonly since: number; readonly told: boolean } {
    const { since, told } = this.#found.get(reason) ?? { since: now, told: false };
    if (told || now - since < PASSING_MS) return { since, told };
    this.#logger.warn({ reason }, 'Another program’s rules may drop packets of pods');
    return { since, told: true };
  }
}

import { type Clock, type IpFamily, systemClock, type Timer } from '../../../core/index.ts';
import { legacyEntryCount } from '../../../sys/index.ts';

export interface LegacyWatchOptions {
  readonly family: IpFamily;
  /** Called when a table has fewer rules than were written to it: of ours some are missing, whatever there is of others. */
  readonly flushed: () => void;
  /** @default the system's */
  readonly clock?: Clock;
  /** How many entries a table has, those of chains included; undefined: nobody knows. @default the kernel tells */
  readonly entries?: (family: IpFamily, table: string) => number | undefined;
}

/** A look takes 0.03 ms, however large the tables are. */
const LOOK_MS = 1000;
/** Whoever is told looks for himself, which takes long where there are many rules. */
const TOLD_MS = 30_000;

/**
 * Notices that others have flushed tables of legacy iptables, as firewalls do when they are started, stopped and reloaded. The kernel
 * tells nobody of changes, but how many rules a table has.
 */
export class LegacyWatch {
  readonly #options: LegacyWatchOptions;
  #totals: Readonly<Record<string, number>> = {};
  #timer: Timer | undefined;

  constructor(options: LegacyWatchOptions) {
    this.#options = options;
  }

  /** @param totals how many rules of ours there are by now, by table */
  written(totals: Readonly<Record<string, number>>): void {
    this.#totals = totals;
    this.#later(LOOK_MS);
  }

  /** Until `written`: for a write that is under way, and at the end. */
  pause(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #later(ms: number): void {
    this.pause();
    this.#timer = (this.#options.clock ?? systemClock).setTimer(() => this.#look(), ms);
  }

  #look(): void {
    const { family, flushed, entries = legacyEntryCount } = this.#options;
    const isShort = Object.entries(this.#totals).some(
      ([table, total]) => total > 0 && (entries(family, table) ?? total) < total,
    );
    this.#later(isShort ? TOLD_MS : LOOK_MS);
    if (isShort) flushed();
  }
}

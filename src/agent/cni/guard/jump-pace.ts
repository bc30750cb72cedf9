/** How long the jump stays where it was moved to, at least. */
const FIRST_MS = 1000;
const LONGEST_MS = 60_000;
/** Who puts something behind it after this time is not at odds with us. More than LONGEST_MS, or no wait would remain the longest. */
const FORGOTTEN_MS = 2 * LONGEST_MS;

/**
 * How often the jump to the rules of pods is moved to the end of chain FORWARD. A firewall that is started needs one move, or a few.
 * Another program that wants to be the last one itself would be answered without end, ten times a second by the guard's quiet
 * time alone, and every transaction makes those who are writing by iptables begin again. So the wait doubles with each move,
 * from a second to a minute.
 */
export class JumpPace {
  #movedAt = Number.NEGATIVE_INFINITY;
  #waitMs = 0;

  /** How long it has to be left yet; 0: it may be moved. */
  leftMs(now: number): number {
    return Math.max(0, this.#movedAt + this.#waitMs - now);
  }

  moved(now: number): void {
    this.#waitMs = now - this.#movedAt > FORGOTTEN_MS ? FIRST_MS : Math.min(2 * this.#waitMs, LONGEST_MS);
    this.#movedAt = now;
  }
}

/** The first wait; with jitter 125 to 250 ms. */
const FIRST_MS = 250;
/** An API server is back within this time of its return, plus its own start. */
const LONGEST_MS = 15_000;

/**
 * How long to wait before attempt `failures` + 1: doubled each time, then shortened by up to half at random, so that the
 * nodes of a cluster do not all come back at the same moment.
 *
 * @param failures how many attempts in a row have failed before this one, from 0
 * @param random a number from 0 to 1 (exclusive)
 * @param askedMs how long the server asks to wait, which it asks of many nodes at once: it is waited for up to half as long
 *   again. @default it does not ask
 */
export function backOffMs(failures: number, random: () => number, askedMs = 0): number {
  const longest = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures);
  const share = random() / 2;
  return Math.max(longest * (1 - share), askedMs * (1 + share));
}

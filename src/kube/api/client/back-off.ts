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
 */
export function backOffMs(failures: number, random: () => number): number {
  const longest = Math.min(LONGEST_MS, FIRST_MS * 2 ** failures);
  return longest * (1 - random() / 2);
}

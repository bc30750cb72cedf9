/** Used by one comparison after the other: ten thousand names are compared at a time, and rows of their own would be 5 MiB. */
const ROWS: readonly [number[], number[], number[]] = [[], [], []];

/**
 * How many letters to change, add, take away or swap with their neighbour to make `b` of `a`; more than `limit` is told as
 * `limit` + 1.
 *
 * No lists are taken apart in its loops: until V8 has compiled them, each is an array and an iterator, 8 MiB for ten thousand names.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  // What both begin and end with costs nothing: of names of one cluster that is most of them.
  let start = 0;
  let aEnd = a.length;
  let bEnd = b.length;
  while (start < aEnd && start < bEnd && a.charCodeAt(start) === b.charCodeAt(start)) start++;
  while (aEnd > start && bEnd > start && a.charCodeAt(aEnd - 1) === b.charCodeAt(bEnd - 1)) {
    aEnd--;
    bEnd--;
  }
  const width = bEnd - start;
  for (let j = 0; j <= width; j++) ROWS[0][j] = j;
  let leastBefore = 0;
  for (let i = 1; i <= aEnd - start; i++) {
    const now = ROWS[i % 3]!;
    const before = ROWS[(i + 2) % 3]!;
    const twoBefore = ROWS[(i + 1) % 3]!;
    now[0] = i;
    let least = i;
    for (let j = 1; j <= width; j++) {
      const own = a.charCodeAt(start + i - 1);
      const other = b.charCodeAt(start + j - 1);
      let distance = Math.min(before[j - 1]! + (own === other ? 0 : 1), before[j]! + 1, now[j - 1]! + 1);
      if (i > 1 && j > 1 && own === b.charCodeAt(start + j - 2) && a.charCodeAt(start + i - 2) === other) {
        distance = Math.min(distance, twoBefore[j - 2]! + 1);
      }
      now[j] = distance;
      least = Math.min(least, distance);
    }
    // A swap reaches back two rows.
    if (Math.min(least, leastBefore) > limit) return limit + 1;
    leastBefore = least;
  }
  return ROWS[(aEnd - start) % 3]![width]!;
}

/** No name that is looked for is longer. */
const LONGEST = 100;

/**
 * Which of some known names a wrong one stands for: the same but for capitals, dashes and the like, or the nearest that differs
 * in few of its letters. Undefined: none.
 */
export function nearestWord(wrong: string, known: Iterable<string>): string | undefined {
  if (wrong.length > LONGEST) return undefined;
  const wanted = letters(wrong);
  let least = Math.max(1, Math.floor(wanted.length / 4)) + 1;
  let nearest: string | undefined;
  for (const word of known) {
    const distance = editDistance(wanted, letters(word), least - 1);
    if (distance >= least) continue;
    least = distance;
    nearest = word;
    if (distance === 0) break;
  }
  return nearest;
}

function letters(word: string): string {
  return word.toLowerCase().replace(/[^a-z0-9]/g, '');
}

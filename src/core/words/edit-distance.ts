/**
 * How many letters to change, add, take away or swap with their neighbour to make `b` of `a`; more than `limit` is told as
 * `limit` + 1.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let twoBefore: readonly number[] = [];
  let before = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const now = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = before[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwap ? twoBefore[j - 2]! + 1 : change;
      now.push(Math.min(change, swap, before[j]! + 1, now[j - 1]! + 1));
    }
    // A swap reaches back two rows.
    if (Math.min(...now, ...before) > limit) return limit + 1;
    twoBefore = before;
    before = now;
  }
  return before[b.length]!;
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

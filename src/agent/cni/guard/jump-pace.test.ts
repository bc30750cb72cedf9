import { expect, it } from 'vitest';
import { JumpPace } from './jump-pace.ts';

/** Moves the jump as soon as it may be, and says when that was. */
function moves(pace: JumpPace, from: number, count: number): number[] {
  let now = from;
  return Array.from({ length: count }, () => {
    now += pace.leftMs(now);
    pace.moved(now);
    return now - from;
  });
}

it('is moved at once, and less and less often while somebody puts something behind it', () => {
  const pace = new JumpPace();
  expect(moves(pace, 5000, 10).map((ms) => ms / 1000)).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
});

it('is moved at once again after some quiet time', () => {
  const pace = new JumpPace();
  moves(pace, 0, 9);
  expect(moves(pace, 400_000, 2)).toEqual([0, 1000]);
});

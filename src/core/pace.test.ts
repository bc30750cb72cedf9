import { expect, it } from 'vitest';
import { Pace, REPAIRS } from './pace.ts';

it('lets a few pass at once, then one a second, and a few again after a quiet time', () => {
  const pace = new Pace(REPAIRS);
  const passed: number[] = [];
  // Somebody destroys what was repaired ten times a second, for ten seconds.
  for (let now = 0; now < 10_000; now += 100) {
    if (pace.leftMs(now) > 0) continue;
    pace.passed(now);
    passed.push(now);
  }
  expect(passed).toEqual([0, 100, 200, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000]);
  expect(pace.leftMs(9100)).toBe(900);
  expect(pace.leftMs(20_000)).toBe(0);
  pace.passed(20_000);
  expect(pace.leftMs(20_000)).toBe(0);
});

it('never delays what comes every second or less often', () => {
  const pace = new Pace(REPAIRS);
  for (let now = 0; now < 100_000; now += 1000) {
    expect(pace.leftMs(now)).toBe(0);
    pace.passed(now);
  }
});

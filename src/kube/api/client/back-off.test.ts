import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { backOffMs } from './back-off.ts';

describe('backOffMs', () => {
  it('doubles up to 15 s', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 7, 2_000].map((failures) => backOffMs(failures, () => 0));
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000]);
  });

  it('is shortened by up to half at random', () => {
    const share = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.nat(20), share, (failures, random) => {
        const longest = backOffMs(failures, () => 0);
        const wait = backOffMs(failures, () => random);
        expect(wait).toBeGreaterThanOrEqual(longest / 2);
        expect(wait).toBeLessThanOrEqual(longest);
      }),
    );
    expect(backOffMs(3, () => 0.5)).toBe(1_500);
  });

  it('is not shorter than the server asks, and brings those that it asked together back apart', () => {
    const waits = [0, 0.5, 0.999].map((random) => backOffMs(0, () => random, 2_000));
    expect(waits).toEqual([2_000, 2_500, expect.closeTo(3_000, -1)]);
    expect(backOffMs(6, () => 0, 2_000)).toBe(15_000);
  });
});

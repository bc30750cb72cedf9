import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isSameBucket, tokenBucketFor } from './token-bucket.ts';

describe('tokenBucketFor', () => {
  it.each([
    // Rate and burst in bits, MTU; then bytes.
    [{ rate: 8_000_000, burst: 8_000_000 }, 1500, { rate: 1_000_000, burst: 1_000_000, limit: 1_025_000 }],
    // What containerd asks for, whose burst is 2^32 - 1 bits.
    [{ rate: 1e7, burst: 2 ** 32 - 1 }, 1500, { rate: 1_250_000, burst: 536_870_911, limit: 536_902_161 }],
    // A burst of less than a frame would let none through.
    [{ rate: 1e6, burst: 8 }, 1450, { rate: 125_000, burst: 1468, limit: 4593 }],
    // 400 Gbit/s: more bytes would wait than 32 bits can count.
    [{ rate: 4e11, burst: 8 * (2 ** 32 - 1) }, 9000, { rate: 5e10, burst: 2 ** 32 - 1, limit: 2 ** 32 - 1 }],
    [{ rate: 1, burst: 1 }, 1500, { rate: 1, burst: 1518, limit: 1518 }],
  ])('%o with MTU %i is %o', (shape, mtu, bucket) => {
    expect(tokenBucketFor(shape, mtu)).toEqual(bucket);
  });

  it('always lets at least one full frame through and never exceeds 32 bits', () => {
    const shape = fc.record({ rate: fc.integer({ min: 1, max: 1e15 }), burst: fc.integer({ min: 1, max: 2 ** 35 }) });
    fc.assert(
      fc.property(shape, fc.integer({ min: 68, max: 65535 }), (asked, mtu) => {
        const { rate, burst, limit } = tokenBucketFor(asked, mtu);
        expect(rate).toBeGreaterThanOrEqual(1);
        expect(burst).toBeGreaterThan(mtu);
        expect(limit).toBeGreaterThanOrEqual(burst);
        expect(limit).toBeLessThan(2 ** 32);
      }),
    );
  });
});

describe('isSameBucket', () => {
  const bucket = { rate: 1_000_000, burst: 16_000, limit: 41_000 };
  it('does not compare a burst that takes longer than the kernel tells', () => {
    const slow = { rate: 1, burst: 1518, limit: 1518 };
    expect(isSameBucket({ ...slow, burst: 143 }, slow)).toBe(true);
    expect(isSameBucket({ ...slow, burst: 143, rate: 2 }, slow)).toBe(false);
  });

  it('minds rate and limit, and lets the burst lose what conversion takes', () => {
    expect(isSameBucket({ ...bucket, burst: 15_999 }, bucket)).toBe(true);
    expect(isSameBucket({ ...bucket, burst: 8_000 }, bucket)).toBe(false);
    expect(isSameBucket({ ...bucket, rate: 1_000_001 }, bucket)).toBe(false);
    expect(isSameBucket({ ...bucket, limit: 40_999 }, bucket)).toBe(false);
  });
});

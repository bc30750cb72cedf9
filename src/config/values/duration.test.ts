import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, parseDuration } from './duration.ts';

describe('parseDuration', () => {
  it.each([
    ['0', 0],
    ['+0', 0],
    ['-0', 0],
    ['0s', 0],
    ['1s', 1000],
    ['1m30s', 90_000],
    ['2h22m', 8_520_000],
    ['500ms', 500],
    ['1.5h', 5_400_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['+2s', 2000],
    ['-1s', -1000],
    ['250us', 0.25],
    ['250µs', 0.25],
    ['250μs', 0.25],
    ['1h0m0.001s', 3_600_001],
  ])('reads %s as %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '1', 's', '.s', '1 s', '1d', '1s2', 'one', '0 ', '--1s', '3000000h'])('refuses "%s"', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

describe('formatDuration', () => {
  it.each([
    [0, '0s'],
    [1e-6, '1ns'],
    [0.0015, '1.5µs'],
    [0.25, '250µs'],
    [1.5, '1.5ms'],
    [500, '500ms'],
    [1000, '1s'],
    [1500, '1.5s'],
    [90_000, '1m30s'],
    [900_000, '15m0s'],
    [3_600_000, '1h0m0s'],
    [86_400_000, '24h0m0s'],
    [-1000, '-1s'],
  ])('writes %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  it('is read back as the same number', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms === 0 ? 0 : ms);
      }),
    );
  });
});

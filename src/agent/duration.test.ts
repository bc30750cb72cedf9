import { expect, it } from 'vitest';
import { parseDuration } from './duration.ts';

it.each([
  ['0', 0],
  ['1s', 1000],
  ['1m30s', 90_000],
  ['2h22m', 8_520_000],
  ['500ms', 500],
  ['1.5h', 5_400_000],
  ['-1s', -1000],
  ['250us', 0.25],
])('reads %s as %d ms', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

it.each(['', '1', 's', '1 s', '1d', '1s2', 'one'])('refuses "%s"', (text) => {
  expect(parseDuration(text)).toBeUndefined();
});

import { expect, it } from 'vitest';
import { formatCidr, parseCidr } from '../../core/index.ts';
import { fullRanges } from './full-ranges.ts';

const FREE = new Map([
  ['10.1.0.0/29', 0],
  ['10.2.0.0/29', 0],
  ['10.3.0.0/29', 1],
]);

it.each([
  [[], ''],
  [[['10.3.0.0/29']], ''],
  [[['10.1.0.0/29']], 'all 5 addresses of 10.1.0.0/29 are in use'],
  [[['10.1.0.0/29', '10.3.0.0/29']], ''],
  [[['10.1.0.0/29', '10.2.0.0/29'], ['10.3.0.0/29']], 'all 10 addresses of 10.1.0.0/29, 10.2.0.0/29 are in use'],
])('of %j: "%s"', (sets, text) => {
  const use = (range: Parameters<typeof formatCidr>[0]) => {
    const free = FREE.get(formatCidr(range))!;
    return { free, used: 5 - free };
  };
  expect(
    fullRanges(
      sets.map((set) => set.map(parseCidr)),
      use,
    ),
  ).toBe(text);
});

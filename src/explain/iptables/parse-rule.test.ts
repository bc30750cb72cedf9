import { expect, it } from 'vitest';
import { parseRule } from './parse-rule.ts';

it('takes a rule apart: what is its own, its matches, its target', () => {
  expect(
    parseRule(
      '-s 10.0.0.0/8 ! -o out0 -p tcp -m tcp ! --dport 80:90 -m statistic --mode random --probability 0.5 -j DNAT --to-destination 10.1.1.1:80',
    ),
  ).toEqual({
    own: [
      { name: '-s', values: ['10.0.0.0/8'], inverted: false },
      { name: '-o', values: ['out0'], inverted: true },
      { name: '-p', values: ['tcp'], inverted: false },
    ],
    matches: [
      { name: 'tcp', options: [{ name: '--dport', values: ['80:90'], inverted: true }] },
      {
        name: 'statistic',
        options: [
          { name: '--mode', values: ['random'], inverted: false },
          { name: '--probability', values: ['0.5'], inverted: false },
        ],
      },
    ],
    target: {
      name: 'DNAT',
      goto: false,
      options: [{ name: '--to-destination', values: ['10.1.1.1:80'], inverted: false }],
    },
  });
});

it('takes what is in quotes for a value, whatever it looks like', () => {
  const { matches, target } = parseRule('-m comment --comment "-j DROP ! \\"-m\\" x" -g NEXT');
  expect(matches).toEqual([
    { name: 'comment', options: [{ name: '--comment', values: ['-j DROP ! "-m" x'], inverted: false }] },
  ]);
  expect(target).toEqual({ name: 'NEXT', goto: true, options: [] });
});

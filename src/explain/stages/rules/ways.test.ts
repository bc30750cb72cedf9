import { expect, it } from 'vitest';
import type { Choice } from '../../choices.ts';
import type { Walk } from '../../walk/index.ts';
import type { Goal } from '../asked.ts';
import { deciders, type Way } from './ways.ts';

const chance = (taken: number): Choice => ({ kind: 'chance', about: 'statistic', options: 2, taken });
const unknown = (about: string, taken: number): Choice => ({ kind: 'unknown', about, options: 2, taken });

/** One that a policy drops, or none does. */
function way(end: 'drop' | 'sent', choices: readonly Choice[], address?: string): Way {
  const chain = { family: 'inet', table: 'theirs', name: 'forward' };
  const steps = [{ source: 'nftables', hook: 'forward', verdict: end, chain, rule: undefined }];
  const goal = address === undefined ? undefined : ({ address } as Goal);
  return { goal, choices, result: { end: { kind: end }, steps } as unknown as Walk };
}

it('names what decides, not what is merely not known, and nothing where all is known', () => {
  const ways = [
    way('drop', [unknown('order', 0), unknown('limit', 1)]),
    way('drop', [unknown('order', 1), unknown('limit', 1)]),
    way('sent', [unknown('order', 0), unknown('limit', 0)]),
    way('sent', [unknown('order', 1), unknown('limit', 0)]),
    way('drop', [chance(1)]),
  ];
  const deciding = deciders(ways);
  expect(ways.slice(0, 2).map(deciding)).toEqual(['limit', 'limit']);
  expect(deciding(ways[4]!)).toBeUndefined();
});

it('names nothing where chance alone decides: an endpoint is refused whatever is true', () => {
  const ways = [0, 1].flatMap((order) => [
    way('drop', [chance(0), unknown('order', order)], '10.244.1.2:80'),
    way('sent', [chance(1), unknown('order', order)], '10.244.1.3:80'),
  ]);
  expect(deciders(ways)(ways[0]!)).toBeUndefined();
  const [one, ...rest] = ways;
  const partly = [one!, ...rest.map((other) => ({ ...other, result: way('sent', []).result }))];
  expect(deciders(partly)(one!)).toBe('order');
});

it('looks through many ways a few times, not once for each of them', () => {
  let looks = 0;
  const ways = Array.from({ length: 500 }, (_, index) => {
    const choices = [chance(index), unknown('limit', index % 2)];
    const one = way(index % 2 === 1 ? 'drop' : 'sent', choices);
    const get = () => {
      looks++;
      return choices;
    };
    return Object.defineProperty({ ...one }, 'choices', { get });
  });
  const deciding = deciders(ways);
  expect(ways.filter((_, index) => index % 2 === 1).map(deciding)).toEqual(Array(250).fill('limit'));
  expect(looks).toBeLessThan(5 * ways.length);
});

import { expect, it } from 'vitest';
import { walkAll } from './choices.ts';

it('walks every way once, in order, also where one choice opens another', () => {
  const { branches, complete } = walkAll((choose) => {
    const first = choose('chance', 'numgen', 3);
    return first === 1 ? `1${choose('unknown', 'limit', 2)}` : String(first);
  }, 100);
  expect(branches.map(({ result }) => result)).toEqual(['0', '10', '11', '2']);
  expect(branches[2]!.choices).toEqual([
    { kind: 'chance', about: 'numgen', options: 3, taken: 1 },
    { kind: 'unknown', about: 'limit', options: 2, taken: 1 },
  ]);
  expect(complete).toBe(true);
});

it('says so when there are more ways than it may walk', () => {
  const walk = () => walkAll((choose) => choose('chance', 'numgen', 1000), 10);
  expect(walk().branches).toHaveLength(10);
  expect(walk().complete).toBe(false);
});

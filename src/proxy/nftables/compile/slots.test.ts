import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignSlots, slotCapacity } from './slots.ts';

const assign = (current: readonly (string | undefined)[], wanted: readonly string[]) =>
  assignSlots(current, wanted, (item) => item);

describe('assignSlots', () => {
  it.each([
    ['the first time they stay in their order', [], ['a', 'b', 'c'], ['a', 'b', 'c']],
    ['a new one goes behind the others', ['a', 'b'], ['a', 'a1', 'b'], ['a', 'b', 'a1']],
    ['the last one leaves', ['a', 'b', 'c'], ['a', 'b'], ['a', 'b']],
    ['one leaves, and the last takes its place', ['a', 'b', 'c'], ['b', 'c'], ['c', 'b']],
    ['one takes the place of another', ['a', 'b', 'c'], ['a', 'c', 'd'], ['a', 'd', 'c']],
    ['an unknown slot is filled', ['a', undefined, 'c'], ['a', 'b', 'c'], ['a', 'b', 'c']],
    ['one that is there twice stays once', ['a', 'a'], ['a', 'b'], ['b', 'a']],
    ['nobody is left', ['a'], [], []],
  ])('%s', (_, current, wanted, expected) => {
    expect(assign(current, wanted)).toEqual(expected);
  });

  it('fills all slots, each with one, and moves only whom it must', () => {
    const names = fc.uniqueArray(fc.constantFrom(...'abcdefghijklmnop'));
    fc.assert(
      fc.property(names, names, (current, wanted) => {
        const slots = assign(current, wanted);
        expect([...slots].sort()).toEqual([...wanted].sort());
        for (const [slot, name] of current.entries()) {
          if (wanted.includes(name) && slot < wanted.length) expect(slots[slot]).toBe(name);
        }
      }),
    );
  });
});

it('gives a power of two of slots, more than half of which are taken', () => {
  expect([0, 1, 2, 3, 4, 5, 8, 9, 1000].map(slotCapacity)).toEqual([0, 1, 2, 4, 4, 8, 8, 16, 1024]);
});

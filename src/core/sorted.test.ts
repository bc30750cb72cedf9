import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareText, insertSorted, removeSorted } from './sorted.ts';

interface Item {
  readonly key: string;
  readonly value: number;
}
const byKey = (a: Item, b: Item) => compareText(a.key, b.key);

describe('a sorted list', () => {
  it('is what a map sorted by key is, whatever comes and goes', () => {
    const step = fc.record({ key: fc.string({ maxLength: 2 }), value: fc.nat(), remove: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const list: Item[] = [];
        const map = new Map<string, number>();
        for (const { key, value, remove } of steps) {
          if (remove) {
            removeSorted(list, { key, value }, byKey);
            map.delete(key);
          } else {
            insertSorted(list, { key, value }, byKey);
            map.set(key, value);
          }
        }
        const expected = [...map].map(([key, value]) => ({ key, value })).sort(byKey);
        expect(list).toEqual(expected);
      }),
    );
  });

  it('looks at a few items of many', () => {
    let looks = 0;
    const counting = (a: number, b: number) => {
      looks++;
      return a - b;
    };
    const list: number[] = [];
    for (let n = 0; n < 5000; n++) insertSorted(list, (n * 7919) % 5000, counting);
    expect(list).toEqual(Array.from({ length: 5000 }, (_, n) => n));
    expect(looks).toBeLessThan(5000 * 16);
  });
});

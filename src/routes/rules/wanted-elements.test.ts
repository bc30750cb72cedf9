import fc from 'fast-check';
import { expect, it } from 'vitest';
import { WantedElements } from './wanted-elements.ts';

it('tells what came and went since it was last asked, however often it changed in between', () => {
  const owner = fc.constantFrom('a', 'b', 'c');
  const elements = fc.array(fc.constantFrom('1', '2', '3', '4'), { maxLength: 4 });
  const step = fc.oneof(fc.record({ owner, elements }), fc.constant('changes' as const), fc.constant('all' as const));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const wanted = new WantedElements();
      const model = new Map<string, readonly string[]>();
      let kernel = new Set<string>();
      const expected = () => [...new Set([...model.values()].flat())].sort();
      for (const each of [...steps, 'changes' as const]) {
        if (each === 'all') {
          kernel = new Set(wanted.takeAll());
        } else if (each === 'changes') {
          const { joined, left } = wanted.takeChanges();
          for (const element of joined) expect(kernel.has(element)).toBe(false);
          for (const element of left) expect(kernel.delete(element)).toBe(true);
          for (const element of joined) kernel.add(element);
        } else {
          model.set(each.owner, each.elements);
          wanted.set(each.owner, each.elements);
        }
        if (typeof each === 'string') expect([...kernel].sort()).toEqual(expected());
      }
    }),
    { numRuns: 200 },
  );
});

it('says whether there is anything to take', () => {
  const wanted = new WantedElements();
  expect(wanted.set('a', [])).toBe(false);
  expect(wanted.set('a', ['1'])).toBe(true);
  wanted.takeChanges();
  expect(wanted.set('a', ['1', '1'])).toBe(false);
  expect(wanted.set('b', ['1'])).toBe(false);
  expect(wanted.set('a', [])).toBe(false);
  expect(wanted.set('b', [])).toBe(true);
});

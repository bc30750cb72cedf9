import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { sameJson } from './same-json.ts';

it('says of any two JSON values what node:util says', () => {
  // Few different members, so that many pairs are equal or nearly so.
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 3 },
      fc.constantFrom(null, true, false, 0, 1, '', 'x'),
      fc.array(tie('any'), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'toString'), tie('any'), { noNullPrototype: true }),
    ),
  })).any;
  fc.assert(
    fc.property(value, value, (a, b) => {
      expect(sameJson(a, b)).toBe(isDeepStrictEqual(a, b));
      expect(sameJson(a, structuredClone(a))).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

it('takes a member that is undefined as one that is missing', () => {
  expect(sameJson({ a: undefined }, {})).toBe(true);
  expect(sameJson({}, { a: undefined })).toBe(true);
  expect(sameJson({ a: undefined }, { a: null })).toBe(false);
});

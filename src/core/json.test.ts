import { expect, it } from 'vitest';
import { JSON_LIMITS, parseJson } from './json.ts';

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

it('reads JSON up to the limits', () => {
  expect(parseJson('{"a":["[[[[",{"b":"\\"[["}]}')).toEqual({ a: ['[[[[', { b: '"[[' }] });
  expect(parseJson(nested(JSON_LIMITS.depth))).toHaveLength(1);
  // Brackets beside each other and in strings are no depth.
  expect(parseJson(`[${Array.from({ length: 1000 }, () => '[{}]').join(',')}]`)).toHaveLength(1000);
  expect(parseJson(JSON.stringify('\\"[{'.repeat(1000)))).toHaveLength(4000);
  expect(() => parseJson('[')).toThrow(SyntaxError);
});

it.each([
  ['deep lists', nested(JSON_LIMITS.depth + 1)],
  ['deep objects', '{"a":'.repeat(6000)],
  ['deep lists behind a string', `["\\\\",${nested(JSON_LIMITS.depth)}]`],
  ['much', JSON.stringify('x'.repeat(JSON_LIMITS.length))],
])('refuses %s', (_, text) => {
  expect(() => parseJson(text)).toThrow(expect.objectContaining({ code: 'ERR_JSON' }));
});

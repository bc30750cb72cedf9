import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CAUSES, CODES_PAGE } from './codes.ts';

const headings = readFileSync(CODES_PAGE, 'utf8')
  .split('\n')
  .flatMap((line) => /^### `([a-z-]+)`$/.exec(line)?.[1] ?? []);

it('has a section in the documentation for each code, in the same order, and no other', () => {
  expect(headings).toEqual(Object.keys(CAUSES));
});

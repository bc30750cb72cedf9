import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CAUSES, CODES_PAGE } from './codes.ts';

const headings = readFileSync(CODES_PAGE, 'utf8')
  .split('\n')
  .flatMap((line) => /^### `([a-z-]+)`$/.exec(line)?.[1] ?? []);

it('has a section in the documentation for each code, in the same order, and no other', () => {
  expect(headings).toEqual(Object.keys(CAUSES));
});

it('has no code that no stage gives', () => {
  const folder = new URL('../stages/', import.meta.url);
  const stages = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(new URL(name, folder), 'utf8'))
    .join('\n');
  const given = Object.keys(CAUSES).filter((code) => stages.includes(`'${code}'`));
  expect(given).toEqual(Object.keys(CAUSES));
});

import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CAUSES, CODES_PAGE } from './codes.ts';

const page = readFileSync(CODES_PAGE, 'utf8');
const headings = page.split('\n').flatMap((line) => /^### `([a-z-]+)`$/.exec(line)?.[1] ?? []);

it('has a section in the documentation for each code, in the same order, and no other', () => {
  expect(headings).toEqual(Object.keys(CAUSES));
});

it.each(Object.entries(CAUSES))('says in the documentation what %s means', (code, { sentence, remedy }) => {
  const [, section] = page.split(`\n### \`${code}\`\n`);
  const [text] = section!.replaceAll('`', '').split('\n#');
  expect(text).toContain(`\n${sentence}\n`);
  expect(text).toContain(`\n- Remedy: ${remedy.replaceAll('`', '')}\n`);
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

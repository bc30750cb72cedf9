import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { CHECKS } from './checks.ts';

const page = readFileSync(new URL('../../docs/preflight.md', import.meta.url), 'utf8');

it('every check is in docs/preflight.md, in the order of the report, and no other', () => {
  const documented = [...page.matchAll(/^\| `([a-z-]+\.[a-z0-9-]+)` \|/gm)].map(([, name]) => name);
  expect(documented).toEqual(CHECKS.map(({ name }) => name));
  expect(new Set(documented).size).toBe(documented.length);
});

it('groups stand together', () => {
  const groups = CHECKS.map(({ name }) => name.split('.')[0]!);
  const begun = groups.filter((group, at) => group !== groups[at - 1]);
  expect(new Set(begun).size).toBe(begun.length);
});

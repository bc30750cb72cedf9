import { existsSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const read = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');

/** `path/of.test.ts`, and with `: "…"` behind it the title of a test in it. */
const NAMED_TEST = /`((?:src|test)\/[\w/.-]+\.ts)`(?:: "([^"]+)")?/g;

const named = [...read('docs/security.md').matchAll(NAMED_TEST)].map(
  ([, file, title]) => [file!, title ?? ''] as const,
);

it('docs/security.md names tests', () => expect(named.length).toBeGreaterThan(40));

it.each(named)('%s is there, with: %s', (file, title) => {
  expect(existsSync(new URL(`../${file}`, import.meta.url))).toBe(true);
  expect(read(file)).toContain(title);
});

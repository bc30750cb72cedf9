import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const at = (path: string) => new URL(`../${path}`, import.meta.url);
const read = (path: string) => readFileSync(at(path), 'utf8');

describe('docs/security.md', () => {
  /** `path/of.test.ts`, and with `: "…"` behind it the title of a test in it. */
  const namedTest = /`((?:src|test)\/[\w/.-]+\.ts)`(?:: "([^"]+)")?/g;
  const named = [...read('docs/security.md').matchAll(namedTest)].map(
    ([, file, title]) => [file!, title ?? ''] as const,
  );

  it('names tests', () => expect(named.length).toBeGreaterThan(40));

  it.each(named)('%s is there, with: %s', (file, title) => {
    expect(existsSync(at(file))).toBe(true);
    expect(read(file)).toContain(title);
  });
});

describe('docs/contributing.md', () => {
  const paths = [...read('docs/contributing.md').matchAll(/`((?:src|test|deploy|docs)\/[\w/.-]+\w\/?)`/g)].map(
    ([, path]) => path!,
  );

  it.each(paths)('names %s, which is there', (path) => expect(existsSync(at(path))).toBe(true));
});

describe('docs/architecture.md', () => {
  const answers = [...read('docs/architecture.md').matchAll(/^\| ([^|]+) \| `(src\/[\w/.-]+)` \|$/gm)];

  it('answers questions', () => expect(answers.length).toBeGreaterThanOrEqual(20));

  it.each(answers.map(([, question, file]) => [question!, file!]))('says where %s is: %s', (_, file) => {
    expect(existsSync(at(file))).toBe(true);
  });
});

it('comments name files that are there', () => {
  const files = ['src', 'test', 'bench', 'demo'].flatMap((folder) =>
    readdirSync(at(folder), { recursive: true, encoding: 'utf8' }).map((path) => `${folder}/${path}`),
  );
  const wrong = files
    .filter((path) => /\.(ts|c|h)$/.test(path))
    .flatMap((path) => {
      const comments = read(path).match(/(?:\/\/|^ *\/?\*).*/gm) ?? [];
      const named = comments.flatMap((comment) => comment.match(/[\w.-]+\/[\w./-]+\.ts\b/g) ?? []);
      return named.filter((name) => !files.some((file) => `/${file}`.endsWith(`/${name}`))).map((name) => [path, name]);
    });
  // The form of an answer above.
  expect(wrong).toEqual([['src/docs.test.ts', 'path/of.test.ts']]);
});

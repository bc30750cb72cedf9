import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

/** More loose files than these in a folder make a hall of a room. */
const MOST_FILES = 15;
/** One file a header of the kernel: the names are the order. */
const HALLS = ['netlink/uapi'];
/** A file a newcomer reads in one sitting. */
const LONGEST = 350;
/** A test file has one subject. */
const LONGEST_TEST = 400;

const root = import.meta.dirname;
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((path) =>
  /(?<!\.test)\.ts$/.test(path),
);

it('no folder is a hall', () => {
  const files = new Map<string, number>();
  for (const path of sources) {
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')));
    files.set(folder, (files.get(folder) ?? 0) + 1);
  }
  const halls = [...files].filter(([folder, count]) => count > MOST_FILES && !HALLS.includes(folder));
  expect(halls).toEqual([]);
});

it('no file is a book, and most are short', () => {
  const lengths = sources.map((path) => readFileSync(join(root, path), 'utf8').split('\n').length - 1);
  expect(sources.filter((_, index) => lengths[index]! > LONGEST)).toEqual([]);
  expect(lengths.sort((a, b) => a - b)[lengths.length >> 1]!).toBeLessThan(90);
});

it('every exported function and class has a docstring', () => {
  const bare = sources.flatMap((path) => {
    const lines = readFileSync(join(root, path), 'utf8').split('\n');
    const isBare = (line: string, index: number) =>
      /^export (async |abstract )?(function|class)\b/.test(line) && !lines[index - 1]?.endsWith('*/');
    return lines.filter(isBare).map((line) => `${path}: ${line}`);
  });
  expect(bare).toEqual([]);
});

it('no test file is a book', () => {
  const tests = ['src', 'test'].flatMap((folder) =>
    readdirSync(join(root, '..', folder), { recursive: true, encoding: 'utf8' }).map((path) => join(folder, path)),
  );
  const long = tests.filter(
    (path) =>
      path.endsWith('.test.ts') && readFileSync(join(root, '..', path), 'utf8').split('\n').length - 1 > LONGEST_TEST,
  );
  expect(long).toEqual([]);
});

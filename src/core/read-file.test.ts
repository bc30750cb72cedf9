import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readGivenFile } from './read-file.ts';

let folder: string;
const path = (name: string) => join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'nodeplane-read-file-'));
  writeFileSync(path('file'), 'content');
  mkdirSync(path('folder'));
  execFileSync('mkfifo', [path('fifo')]);
  writeFileSync(path('large'), '');
  truncateSync(path('large'), 4 * 1024 * 1024 + 1);
});
afterAll(() => rmSync(folder, { recursive: true }));

it('reads a file', () => {
  expect(readGivenFile(path('file')).toString()).toBe('content');
});

it.each([
  ['fifo', 'it is a FIFO, and a file is needed'],
  ['folder', 'EISDIR: illegal operation on a directory'],
  ['large', 'it has 4194305 bytes, at most 4194304 are read'],
  ['absent', 'ENOENT: no such file or directory'],
])('says what is wrong with %s, without waiting for anybody', (name, reason) => {
  expect(() => readGivenFile(path(name))).toThrow(reason);
});

it('takes no device for a file', () => {
  expect(() => readGivenFile('/dev/zero')).toThrow('it is a device');
});

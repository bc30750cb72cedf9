import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Clock } from './clock.ts';
import { FolderWatch } from './folder-watch.ts';

let path: string;
let watch: FolderWatch;
let bursts: string[][];
let now: number;
/** The timer that is set, if any. */
let timer: { readonly ms: number; readonly fn: () => unknown } | undefined;

/** Stands still, and shows its timer: inotify's events come in real time, what follows from them does not. */
const clock: Clock = {
  now: () => now,
  wallTime: () => now,
  setTimer(fn, ms) {
    expect(timer).toBeUndefined();
    timer = { ms, fn };
    return { cancel: () => (timer = undefined) };
  },
};

beforeEach(() => {
  path = mkdtempSync(join(tmpdir(), 'nodeplane-manifests-'));
  bursts = [];
  now = 0;
  timer = undefined;
  watch = new FolderWatch(path, clock, (names) => bursts.push([...names].sort()));
  expect(watch.refresh()).toBeUndefined();
});

afterEach(() => {
  watch.close();
  rmSync(path, { recursive: true, force: true });
});

it('reports a burst once it is over, and a long one in between', async () => {
  writeFileSync(join(path, 'a.yaml'), 'a');
  await expect.poll(() => timer?.ms).toBe(10);
  now = 32;
  writeFileSync(join(path, 'b.yaml'), 'b');
  await expect.poll(() => timer?.ms).toBe(8);
  now = 35;
  writeFileSync(join(path, 'c.yaml'), 'c');
  await expect.poll(() => timer?.ms).toBe(5);
  expect(bursts).toEqual([]);
  const { fn } = timer!;
  timer = undefined;
  fn();
  expect(bursts).toEqual([['a.yaml', 'b.yaml', 'c.yaml']]);
  writeFileSync(join(path, 'a.yaml'), 'aa');
  await expect.poll(() => timer?.ms).toBe(10);
});

it('forgets a burst when it is closed', async () => {
  writeFileSync(join(path, 'a.yaml'), 'a');
  await expect.poll(() => timer?.ms).toBe(10);
  watch.close();
  expect(timer).toBeUndefined();
});

it('throws when the folder is gone', () => {
  rmSync(path, { recursive: true });
  expect(() => watch.refresh()).toThrow('ENOENT');
});

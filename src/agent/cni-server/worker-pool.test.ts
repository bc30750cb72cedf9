import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { WorkerPool } from './worker-pool.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-pool-'));
const file = join(folder, 'worker.cjs');
writeFileSync(
  file,
  `const { parentPort, threadId } = require('node:worker_threads');
   parentPort.on('message', ({ stdin }) => {
     if (stdin === 'throw') throw new Error('thrown');
     if (stdin === 'hold') return;
     if (stdin === 'exit') process.exit(3);
     parentPort.postMessage({ exitCode: 0, stdout: String(threadId), stderr: '' });
   });`,
);

let clock: FakeClock;
let pool: WorkerPool;
beforeEach(() => {
  clock = new FakeClock();
  pool = new WorkerPool({ file, clock, size: 3, soon: 3, idleMs: 1000 });
});
afterEach(() => pool.stop());
afterAll(() => rmSync(folder, { recursive: true }));

const run = async (stdin = '') => (await pool.run({ environment: {}, stdin })).stdout;
const runAll = async (count: number) => new Set(await Promise.all(Array.from({ length: count }, () => run())));

it('uses one thread for one request after the other, and at most as many as it may for many', async () => {
  const first = await run();
  expect(await run()).toBe(first);
  expect((await runAll(10)).size).toBe(3);
});

it('begins more threads than there are processors only for a request that has waited', async () => {
  pool = new WorkerPool({ file, clock, size: 2, soon: 1, idleMs: 1000 });
  expect((await runAll(5)).size).toBe(1);
  const held = run('hold');
  held.catch(() => {});
  const other = run();
  await clock.advance(50);
  expect(await other).toMatch(/^\d+$/);
});

it('ends threads that have nothing to do, but for one', async () => {
  const threads = await runAll(3);
  await clock.advance(1);
  pool.start();
  await clock.advance(1000);
  // Two have ended; what begins now are others.
  const later = await runAll(3);
  expect([...later].filter((thread) => threads.has(thread)).length).toBeLessThanOrEqual(1);
});

it.each(['throw', 'exit'])('fails only the request that makes its thread %s', async (what) => {
  const others = [run(), run()];
  await expect(run(what)).rejects.toMatchObject({ code: 'ERR_CNI_REQUEST' });
  for (const other of others) expect(await other).toMatch(/^\d+$/);
  expect(await run()).toMatch(/^\d+$/);
});

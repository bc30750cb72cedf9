import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { ownCommits, ownPorts } from '../../../netlink/nftables/index.ts';
import { WorkerPool } from './worker-pool.ts';

const folder = mkdtempSync(join(tmpdir(), 'nodeplane-pool-'));
const file = join(folder, 'worker.cjs');
/** Whoever opens it waits in the kernel for somebody at the other end. */
const fifo = join(folder, 'fifo');
execFileSync('mkfifo', [fifo]);
writeFileSync(
  file,
  `const fs = require('node:fs');
   const { parentPort, threadId, workerData } = require('node:worker_threads');
   parentPort.on('message', ({ stdin }) => {
     if (stdin === 'throw') throw new Error('thrown');
     if (stdin === 'hold') return;
     if (stdin === 'ports') parentPort.postMessage({ nftPorts: [4711, 4712] });
     if (stdin === 'fewer ports') parentPort.postMessage({ nftPorts: [4712] });
     if (stdin === 'commit') Atomics.add(new Int32Array(workerData.ownCommits), 0, 1);
     if (stdin === 'exit') process.exit(3);
     if (stdin === 'spin') for (;;);
     if (stdin === 'fifo') {
       fs.appendFileSync(${JSON.stringify(join(folder, 'hanging'))}, '.');
       fs.readFileSync(${JSON.stringify(fifo)});
     }
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

it('knows over which sockets its threads change nf_tables, for as long as they are there', async () => {
  await run('ports');
  expect(ownPorts()).toEqual([4711, 4712]);
  await run('fewer ports');
  expect(ownPorts()).toEqual([4712]);
  await pool.stop();
  expect(ownPorts()).toEqual([]);
});

it('counts the transactions of its threads with its own', async () => {
  const counted = () => Atomics.load(new Int32Array(ownCommits()), 0);
  const before = counted();
  await run('commit');
  expect(counted()).toBe(before + 1);
});

it('looks for idle threads once in a while, however often it is started', async () => {
  const setTimer = vi.spyOn(clock, 'setTimer');
  for (let i = 0; i < 3; i++) pool.start();
  await clock.advance(10_000);
  expect(setTimer).toHaveBeenCalledTimes(11);
});

it('refuses what waits for a thread when it stops, and begins no other', async () => {
  pool = new WorkerPool({ file, clock, size: 1, soon: 1, idleMs: 1000 });
  const outcomes = Promise.all([run('hold'), run()].map((job) => job.catch((error: Error) => error.message)));
  await pool.stop();
  const atTheEnd = 'Cannot begin a thread for a CNI request: the agent is about to end';
  expect(await outcomes).toEqual(['The thread of a CNI request ended over it', atTheEnd]);
  await expect(run()).rejects.toThrow(atTheEnd);
});

it.each(['throw', 'exit'])('fails only the request that makes its thread %s', async (what) => {
  const others = [run(), run()];
  await expect(run(what)).rejects.toMatchObject({ code: 'ERR_CNI_REQUEST' });
  for (const other of others) expect(await other).toMatch(/^\d+$/);
  expect(await run()).toMatch(/^\d+$/);
});

describe('a job that takes too long', () => {
  const limitMs = 5000;
  beforeEach(() => {
    pool = new WorkerPool({ file, clock, size: 2, soon: 2, idleMs: 1000, limitMs });
  });

  it.each(['hold', 'spin'])('ends its thread, and another one takes its place: %s', async (what) => {
    const late = [run(what), run(what)];
    const next = run();
    for (const job of late) job.catch(() => {});
    await clock.advance(limitMs);
    for (const job of late)
      await expect(job).rejects.toThrow('The thread of a CNI request ended over it: it did not end within 5 s');
    expect(await next).toMatch(/^\d+$/);
  });

  it('is given up when its thread hangs in the kernel; when all do, the next is refused at once', async () => {
    const late = [run('fifo'), run('fifo')];
    const outcomes = Promise.allSettled(late);
    const next = run();
    await expect.poll(() => readFileSync(join(folder, 'hanging'), 'utf8')).toBe('..');
    await clock.advance(limitMs);
    await clock.advance(1000);
    expect((await outcomes).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    // It had waited before they were given up.
    expect(await next).toMatch(/^\d+$/);
    await expect(run()).rejects.toThrow(/2 hang in system calls/);
    // The other end lets them go.
    const writer = openSync(fifo, 'w');
    await expect.poll(() => run().catch(() => '')).toMatch(/^\d+$/);
    closeSync(writer);
  });
});

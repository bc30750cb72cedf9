import { type ChildProcess, spawn } from 'node:child_process';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildSync } from 'esbuild';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createFolder, createNamespace, own, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';
import { createNode, reaches } from './fixture.ts';
import { createServedNode } from './served-node.ts';

// The bridge of a network is made, and rules are withdrawn, with the node's lock held alone; pods of a bridge that is there share it.

beforeEach(startSharers);
afterEach(removeAll);

/** Processes and threads that share the node's lock all the time, each holding it when another gives it back. */
async function startSharers(): Promise<void> {
  const { path } = createFolder('sharers');
  const outfile = join(path, 'sharer.mjs');
  const entry = join(import.meta.dirname, 'lock-sharer.ts');
  buildSync({ entryPoints: [entry], bundle: true, platform: 'node', format: 'esm', outfile });
  copyFileSync(builtProgram('koffi.node'), join(path, 'koffi.node'));
  await Promise.all([1, 2, 3].map(() => untilShared(startSharer(outfile))));
}

function startSharer(program: string): ChildProcess {
  const sharer = spawn('node', [program], { stdio: ['ignore', 'pipe', 'inherit'] });
  own(() => void sharer.kill('SIGKILL'));
  return sharer;
}

function untilShared({ stdout }: ChildProcess): Promise<void> {
  return new Promise((resolve) => stdout!.once('data', () => resolve()));
}

it('the stand-alone plugin makes the bridge, however many share the lock of the node meanwhile', async () => {
  const node = createNode();
  const [first, second] = [createNamespace('first'), createNamespace('second')];
  await node.add(first);
  // Shares it with them.
  await node.add(second);
  expect(reaches(second, '10.244.1.1')).toBe(true);
});

it('so does a thread of the agent', async () => {
  const served = createServedNode();
  await served.startAgent();
  const pods = [createNamespace('first'), createNamespace('second'), createNamespace('third')];
  for (const { status, stdout } of await Promise.all(pods.map((pod) => served.call('ADD', pod)))) {
    expect({ status, stdout }).toMatchObject({ status: 0 });
  }
});

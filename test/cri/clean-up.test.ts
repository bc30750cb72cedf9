import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createFolder, removeAll } from '../lab/namespace.ts';
import { cgroups, processesByMounts } from './remains.ts';

/** What a run with a containerd and a pod says it made. */
interface Made {
  readonly folder: string;
  readonly cgroup: string;
  readonly namespace: string;
}

const program = join(createFolder('ending-run').path, 'ending-run.cjs');

beforeAll(async () => {
  await build({
    entryPoints: [fileURLToPath(new URL('./ending-run.ts', import.meta.url))],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    // The bundle lies elsewhere; what the files look for beside them is found from here.
    define: { 'import.meta.url': JSON.stringify(import.meta.url) },
  });
});
afterAll(removeAll);

it('leaves nothing behind when the run ends', async () => {
  const run = start('process.exit');
  const made = await told(run);
  await ended(run);
  expect(left(made)).toEqual([]);
});

it('has the next run remove what a killed one left: daemon, shims, containers, mounts and cgroups', async () => {
  const killed = start('a signal');
  const made = await told(killed);
  expect(left(made)).toEqual(expect.arrayContaining([made.folder, made.namespace, expect.stringMatching(/^process/)]));
  killed.kill('SIGKILL');
  await ended(killed);
  expect(left(made)).toEqual(expect.arrayContaining([made.folder, made.namespace, expect.stringMatching(/^process/)]));
  const next = start('process.exit');
  await told(next);
  await ended(next);
  expect(left(made)).toEqual([]);
});

function start(ending: string): ChildProcess {
  return spawn(process.execPath, [program, ending], { stdio: ['ignore', 'pipe', 'inherit'] });
}

async function told(run: ChildProcess): Promise<Made> {
  let output = '';
  for await (const chunk of run.stdout!) {
    output += String(chunk);
    if (output.includes('\n')) break;
  }
  return JSON.parse(output) as Made;
}

async function ended(run: ChildProcess): Promise<void> {
  if (run.exitCode === null && run.signalCode === null) await once(run, 'exit');
}

function left({ folder, cgroup, namespace }: Made): string[] {
  return [
    ...processesByMounts((mounts) => mounts.includes(folder)).map((pid) => `process ${pid}`),
    ...cgroups((name) => name === cgroup),
    ...[folder, namespace].filter((path) => existsSync(path)),
  ];
}

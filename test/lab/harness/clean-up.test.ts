import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { NODE_PATHS } from '../../../src/core/index.ts';
import { inNetns, makeOwnDirectory } from '../../../src/sys/index.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';

interface Made {
  readonly namespaces: readonly string[];
  readonly folder: string;
  readonly pid: number;
}

const here = dirname(fileURLToPath(import.meta.url));
const program = join(createFolder('clean-up').path, 'ending-run.mjs');

beforeAll(async () => {
  await build({
    entryPoints: [join(here, 'ending-run.ts')],
    outfile: program,
    bundle: true,
    platform: 'node',
    format: 'esm',
    // The bundle lies elsewhere; the built programs and the FFI are found from the harness's own place.
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(join(here, '../lab.ts')).href) },
  });
});
afterAll(removeAll);

it.each(['an uncaught exception', 'an unhandled rejection', 'process.exit'])(
  'leaves nothing behind after %s',
  async (ending) => {
    const run = start(ending);
    const made = await told(run);
    expect(made.namespaces).toHaveLength(2);
    await ended(run);
    await expect.poll(() => left(made)).toEqual([]);
  },
);

it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('leaves nothing behind after %s', async (signal) => {
  const run = start('a signal');
  const made = await told(run);
  expect(left(made)).toEqual([...made.namespaces, made.folder, `process ${made.pid}`]);
  run.kill(signal);
  expect(await ended(run)).toBe(signal);
  await expect.poll(() => left(made)).toEqual([]);
});

it('has the next run remove what a killed one left', async () => {
  const killed = start('a signal');
  const made = await told(killed);
  killed.kill('SIGKILL');
  await ended(killed);
  const next = start('process.exit');
  await told(next);
  await ended(next);
  await expect.poll(() => left(made)).toEqual([]);
});

it('does not touch what belongs to a run that is still going', async () => {
  const mine = createNamespace('mine');
  const other = start('process.exit');
  await told(other);
  await ended(other);
  expect(existsSync(mine.path)).toBe(true);
});

it('removes with a namespace what a killed agent left of its name', () => {
  const namespace = createNamespace('killed');
  const files = ['lock', 'sock'].map((kind) =>
    join(NODE_PATHS.runDir, `agent-${statSync(namespace.path).ino}.${kind}`),
  );
  makeOwnDirectory(NODE_PATHS.runDir, 'a test');
  for (const file of files) {
    // Of an earlier namespace of this number.
    rmSync(file, { force: true });
    writeFileSync(file, '');
  }
  namespace.remove();
  expect(files.filter((file) => existsSync(file))).toEqual([]);
});

function start(ending: string): ChildProcess {
  return spawn(process.execPath, [program, ending], { stdio: ['ignore', 'pipe', 'ignore'] });
}

/** What the run says it made, once it is all there. */
async function told(run: ChildProcess): Promise<Made> {
  let output = '';
  for await (const chunk of run.stdout!) {
    output += String(chunk);
    if (output.includes('\n')) break;
  }
  return JSON.parse(output) as Made;
}

/** Resolves to the exit code or signal. */
function ended(run: ChildProcess): Promise<number | string | null> {
  if (run.exitCode !== null || run.signalCode !== null) return Promise.resolve(run.exitCode ?? run.signalCode);
  return new Promise((resolve) => run.on('exit', (code, signal) => resolve(code ?? signal)));
}

function left(made: Made): string[] {
  const namespaces = execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' });
  return [
    ...made.namespaces.filter((name) => namespaces.includes(name)),
    ...(existsSync(made.folder) ? [made.folder] : []),
    ...(isRunning(made.pid) ? [`process ${made.pid}`] : []),
  ];
}

/** A killed process without a parent that reaps it stays listed as a zombie: that is not running. */
function isRunning(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

it('programs run in namespaces also when that is gone which the test was in at the first of them', async () => {
  // Another instance of the module, as in a process that has run none so far.
  const instance = '../fork-server.ts?first';
  const { runForked } = (await import(instance)) as typeof import('../fork-server.ts');
  const [entered, other] = [createNamespace('entered'), createNamespace('other')];
  expect(inNetns(entered.path, () => runForked(entered.path, 'true', []))).toMatchObject({ status: 0 });
  entered.remove();
  expect(runForked(other.path, 'true', [])).toMatchObject({ status: 0 });
});

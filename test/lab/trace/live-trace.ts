import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { LabNode } from '../lab.ts';
import { own } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A trace that waits for packets; `ended` when it has printed. */
export interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
}

/** Begins `nodeplane trace` on the node, and returns when it stands in the kernel. */
export async function beginTrace({ namespace }: LabNode, ...args: string[]): Promise<Running> {
  const command = ['netns', 'exec', namespace.name, builtProgram('nodeplane'), 'trace', ...args];
  const child = spawn('ip', command, { env: { ...process.env, XTABLES_LOCKFILE: '/dev/null' } });
  own(() => child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  let isOver = false;
  const ended = new Promise<Ended>((resolve) => {
    child.on('close', (status) => {
      isOver = true;
      resolve({ status, stdout, stderr });
    });
  });
  while (!isOver && !namespace.run('nft', 'list', 'tables').includes('nodeplane-trace')) await delay(50);
  return { child, ended };
}

/** A whole trace with packets sent meanwhile. */
export async function traceOf(node: LabNode, args: readonly string[], send: () => Promise<unknown>): Promise<Ended> {
  const { ended } = await beginTrace(node, ...args);
  await send();
  return ended;
}

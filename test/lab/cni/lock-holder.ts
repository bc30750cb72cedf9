import { spawn } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { NODE_PATHS } from '../../../src/core/index.ts';
import { makeOwnDirectory } from '../../../src/sys/index.ts';
import { createNamespace, own } from '../namespace.ts';
import type { ServedNode } from './served-node.ts';

/** Keeps every ADD of the node at its reservation, until the function it returns is called. */
export async function holdReservations(served: ServedNode): Promise<() => void> {
  // The network's directory comes with its first pod.
  const first = createNamespace('first');
  expect(await served.call('ADD', first)).toMatchObject({ status: 0 });
  expect(await served.call('DEL', first)).toMatchObject({ status: 0 });
  return holdNetwork(join(served.dataDir, 'nodeplane'));
}

/** Keeps what wants to change a network's directory of reservations waiting, until the function it returns is called. */
export function holdNetwork(directory: string): Promise<() => void> {
  return hold(join(directory, 'lock'));
}

/** Keeps what changes anything that pods of a node share waiting, until the function it returns is called. */
export function holdNode(): Promise<() => void> {
  makeOwnDirectory(NODE_PATHS.runDir, 'a test');
  return hold(NODE_PATHS.nodeLock);
}

async function hold(lock: string): Promise<() => void> {
  const holder = spawn('flock', ['--no-fork', lock, 'sh', '-c', 'echo held; exec sleep 60'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const release = own(() => void holder.kill('SIGKILL'));
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  return release;
}

/** Whether a process has the lock of a network's reservations open, which is the case while it waits for it. */
export function waitsForReservations(pid: number): boolean {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).some((descriptor) => {
    try {
      return readlinkSync(join(folder, descriptor)).endsWith('/lock');
    } catch {
      return false; // closed meanwhile
    }
  });
}

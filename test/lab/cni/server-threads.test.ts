import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { WorkerPool } from '../../../src/agent/index.ts';
import { systemClock } from '../../../src/core/index.ts';
import { inNetns, withFileLock } from '../../../src/sys/index.ts';
import { createFolder, createNamespace, removeAll } from '../namespace.ts';
import { builtProgram } from '../programs.ts';

afterEach(removeAll);

/** A pool whose first thread is in a namespace of its own: threads inherit it from the one that begins them. */
function startPool(limitMs?: number): WorkerPool {
  const pool = new WorkerPool({ file: builtProgram('cni-worker.js'), clock: systemClock, ...(limitMs && { limitMs }) });
  inNetns(createNamespace('threads').path, () => pool.start());
  return pool;
}

/** How many descriptors of this process lead to a socket, or into a folder. */
function open(folder: string): number {
  return readdirSync('/proc/self/fd').filter((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`);
      return target.startsWith('socket:') || target.startsWith(folder);
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}

it('a thread that hangs in a system call gives back its lock and its sockets', async () => {
  const folder = createFolder('threads').path;
  const network = join(folder, 'net');
  const [lock, address] = [join(network, 'lock'), join(network, '10.0.0.2')];
  mkdirSync(join(network, '.nodeplane'), { recursive: true });
  // Of a pod that is gone since an earlier boot. Whoever reads its address, under the lock, waits for a writer.
  const note = {
    containerId: 'a',
    ifname: 'eth0',
    addresses: ['10.0.0.2'],
    features: [],
    bootId: 'earlier',
    maker: '1:2',
  };
  writeFileSync(join(network, '.nodeplane', 'nplab-none'), JSON.stringify(note));
  execFileSync('mkfifo', [address]);
  const before = open(folder);
  const pool = startPool(3000);
  const outcome = pool.run({ reclaim: [folder] }).catch((error: unknown) => String(error));
  await expect.poll(() => open(folder)).toBeGreaterThan(before);
  await expect.poll(() => isFree(lock)).toBe(false);
  expect(await outcome).toContain('did not end within 3 s');
  expect(isFree(lock)).toBe(true);
  expect(open(folder)).toBe(before);
  closeSync(openSync(address, 'w'));
  await pool.stop();
});

it('a thread that ends leaves no conversation with the kernel behind', async () => {
  const dataDir = createFolder('threads').path;
  const before = open(dataDir);
  const pool = startPool();
  const config = { cniVersion: '1.1.0', name: 'net', type: 'nodeplane-cni', ipam: { type: 'host-local', dataDir } };
  const environment = { CNI_COMMAND: 'DEL', CNI_CONTAINERID: 'a', CNI_IFNAME: 'eth0', CNI_PATH: '/nowhere' };
  expect(await pool.run({ environment, stdin: JSON.stringify(config) })).toMatchObject({ exitCode: 0 });
  expect(open(dataDir)).toBeGreaterThan(before);
  await pool.stop();
  expect(open(dataDir)).toBe(before);
});

function isFree(lock: string): boolean {
  try {
    return withFileLock(lock, () => true, { timeoutMs: 0 });
  } catch {
    return false;
  }
}

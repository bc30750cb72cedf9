import { KernelError, NodeplaneError } from '../core/index.ts';
import { libc } from './libc.ts';
import { sleepSync } from './sleep.ts';

const O_RDONLY = 0;
const O_RDWR = 2;
const O_CREAT = 0o100;
const O_CLOEXEC = 0o2000000;
const LOCK_EX = 2;
const LOCK_NB = 4;
/** Mostly the holder is gone at once; then it pays to look soon. */
const SHORTEST_POLL_MS = 0.1;
const LONGEST_POLL_MS = 5;

/** How to take a lock. */
export interface FileLockOptions {
  /** How long to wait for another holder. @default 10000 */
  readonly timeoutMs?: number;
  /** False locks a file that must exist and may not be writable, such as a namespace's in /proc. @default true */
  readonly create?: boolean;
}

/**
 * Runs the synchronous `fn` while holding flock(2) on `path`, which is created if missing (mode 0600) and stays.
 * The kernel releases the lock when the process ends, however it ends.
 *
 * @throws ERR_LOCK_TIMEOUT when another process holds it for longer than the timeout
 */
export function withFileLock<T>(path: string, fn: () => T, options: FileLockOptions = {}): T {
  const timeoutMs = options.timeoutMs ?? 10_000;
  const c = libc();
  const mode = options.create === false ? O_RDONLY : O_RDWR | O_CREAT;
  const fd = c.open(path, mode | O_CLOEXEC, 0o600);
  try {
    const deadline = performance.now() + timeoutMs;
    let pollMs = SHORTEST_POLL_MS;
    while (!tryLock(fd)) {
      if (performance.now() >= deadline) {
        throw new NodeplaneError(
          'ERR_LOCK_TIMEOUT',
          `Waited ${timeoutMs} ms for the lock "${path}", held by another process`,
          {
            facts: { path, timeoutMs },
          },
        );
      }
      sleepSync(pollMs);
      pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS);
    }
    return fn();
  } finally {
    c.close(fd);
  }
}

function tryLock(fd: number): boolean {
  try {
    libc().flock(fd, LOCK_EX | LOCK_NB);
    return true;
  } catch (error) {
    if (error instanceof KernelError && error.errnoName === 'EAGAIN') return false;
    throw error;
  }
}

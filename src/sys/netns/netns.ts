import { statSync } from 'node:fs';
import { NodeplaneError } from '../../core/index.ts';
import { libc } from '../libc.ts';

const O_RDONLY = 0;
/** A path from outside may name a FIFO, whose opening would wait for a writer. */
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const CLONE_NEWNET = 0x40000000;
/** Of the calling *thread*: /proc/self would mean the main thread, also when asked from a worker. */
const OWN_NETNS = '/proc/thread-self/ns/net';

/** An open network namespace. The descriptor keeps the namespace alive until `close`. */
export interface NetnsHandle {
  readonly fd: number;
  readonly path: string;
  close(): void;
}

/** Opens the namespace at `path` (`/run/netns/x`, `/proc/PID/ns/net`). Throws ERR_NETNS when it is not there. */
export function openNetns(path: string): NetnsHandle {
  let fd: number;
  try {
    fd = libc().open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
  } catch (cause) {
    throw new NodeplaneError('ERR_NETNS', `Cannot open network namespace "${path}"`, { facts: { path }, cause });
  }
  return { fd, path, close: () => libc().close(fd) };
}

/**
 * Runs `fn` with the calling thread inside another network namespace.
 *
 * setns(2) moves only the calling thread, so `fn` must be synchronous: after an `await` other code of the process would
 * run in the wrong namespace. Open a socket inside and use it outside: a socket stays in the namespace it was made in.
 * When the way back fails the process aborts, because everything it did from then on would happen on the wrong host.
 *
 * @param target a path or an open descriptor of a namespace
 * @returns what `fn` returns
 * @throws ERR_NETNS when the namespace cannot be entered; whatever `fn` throws
 */
export function inNetns<T>(target: string | NetnsHandle, fn: () => T extends Promise<unknown> ? never : T): T {
  const own = openNetns(OWN_NETNS);
  try {
    const handle = typeof target === 'string' ? openNetns(target) : target;
    try {
      return inside(handle, own, fn);
    } finally {
      if (typeof target === 'string') handle.close();
    }
  } finally {
    own.close();
  }
}

function inside<T>(target: NetnsHandle, own: NetnsHandle, fn: () => T): T {
  try {
    libc().setns(target.fd, CLONE_NEWNET);
  } catch (cause) {
    throw new NodeplaneError('ERR_NETNS', `Cannot enter network namespace "${target.path}"`, { cause });
  }
  try {
    return fn();
  } finally {
    returnTo(own);
  }
}

/**
 * Moves the calling thread into a namespace for good, as tests and measurements want it that play a whole node; the agent
 * never does. Throws ERR_NETNS when it is not there.
 */
export function enterNetns(path: string): void {
  const handle = openNetns(path);
  try {
    libc().setns(handle.fd, CLONE_NEWNET);
  } finally {
    handle.close();
  }
}

/** What identifies a namespace whatever path it is reached by: device and inode of its nsfs file. */
export function netnsIdentity(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${dev}:${ino}`;
}

/** Whether `path` is the network namespace this thread runs in. */
export function isOwnNetns(path: string): boolean {
  return netnsIdentity(path) === netnsIdentity(OWN_NETNS);
}

function returnTo(own: NetnsHandle): void {
  try {
    libc().setns(own.fd, CLONE_NEWNET);
  } catch (error) {
    process.stderr.write(`Cannot return to the own network namespace, aborting: ${String(error)}\n`);
    process.abort();
  }
}

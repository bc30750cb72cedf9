import { closeSync, fchmodSync, fstatSync, openSync } from 'node:fs';
import { KernelError, NodeplaneError } from '../core/index.ts';
import { libc } from './libc.ts';
import { isTrusted } from './own-directory.ts';
import { describeLockHolder } from './processes/lock-holder.ts';

const O_RDWR = 2;
const O_CREAT = 0o100;
const O_NOFOLLOW = 0o400000;
const O_NONBLOCK = 0o4000;
const O_CLOEXEC = 0o2000000;
const LOCK_SH = 1;
const LOCK_EX = 2;
const LOCK_NB = 4;
const OPEN_TO_OTHERS = 0o077;
/** Mostly the holder is gone at once; then it pays to look soon. */
const SHORTEST_POLL_MS = 0.1;
const LONGEST_POLL_MS = 5;

/** How often threads of this process gave a lock back: who waits for one looks again then, and not at its next poll alone. */
let releases = new Int32Array(new SharedArrayBuffer(4));

/** The memory by which threads of this process tell each other that they gave a lock back. */
export function lockReleases(): SharedArrayBuffer {
  return releases.buffer;
}

/** Has this thread use the memory of another one for that. */
export function shareLockReleases(memory: SharedArrayBuffer): void {
  releases = new Int32Array(memory);
}

/**
 * flock(2) on a file that is created if missing (mode 0600) and stays. The kernel releases the lock when the process ends,
 * however it ends.
 *
 * Whoever can open a file, for reading too, can lock it and keep all others waiting; so it must be root's or this user's,
 * and others lose the right to open it if they had one.
 */
export class FileLock {
  readonly path: string;
  readonly #fd: number;

  /** @throws ERR_UNSAFE_PATH when it is another user's, or no regular file; KernelError when it cannot be opened */
  constructor(path: string) {
    this.path = path;
    // O_NONBLOCK: a fifo in its place must not keep us waiting.
    this.#fd = libc().open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0o600);
    try {
      closeToOthers(this.#fd, path);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /**
   * Takes the lock if nobody else holds it; whether it is held now. Never waits.
   *
   * @param shared with others that take it so
   */
  tryTake({ shared = false }: Pick<FileLockOptions, 'shared'> = {}): boolean {
    return tryFlock(this.#fd, shared ? LOCK_SH : LOCK_EX);
  }

  /** Who holds it, in words. */
  holder(): string {
    return describeLockHolder(fstatSync(this.#fd));
  }

  /** Gives it back. */
  close(): void {
    libc().close(this.#fd);
  }
}

/**
 * Who holds the lock of a file, in words, whichever pid namespace they are in; undefined: nobody. Nothing is made or written; for
 * the moment of asking it is held, shared with others who ask.
 *
 * @throws what open(2) throws, also where there is no such file; KernelError
 */
export function holderOf(path: string): string | undefined {
  const fd = openSync(path, O_NOFOLLOW | O_NONBLOCK);
  try {
    return tryFlock(fd, LOCK_SH) ? undefined : describeLockHolder(fstatSync(fd));
  } finally {
    closeSync(fd);
  }
}

/** Whether it is held now. */
function tryFlock(fd: number, kind: number): boolean {
  try {
    libc().flock(fd, kind | LOCK_NB);
    return true;
  } catch (error) {
    if (error instanceof KernelError && error.errnoName === 'EAGAIN') return false;
    throw error;
  }
}

/** How to take a lock. */
export interface FileLockOptions {
  /** How long to wait for another holder. @default 10000 */
  readonly timeoutMs?: number;
  /** With others that take it so, as long as nobody holds it alone. @default false */
  readonly shared?: boolean;
  /**
   * A second lock, for one that some share: taken first and in the same way, and given back when the lock is held. Who waits
   * for the lock alone keeps newcomers behind it; among those that share without end its turn would never come. Who shares
   * holds it for microseconds, or with its equals behind one that has the lock alone, and so keeps nobody behind it for good.
   * @default none
   */
  readonly gate?: string;
}

/**
 * Runs the synchronous `fn` while holding the lock of a file.
 *
 * @throws ERR_LOCK_TIMEOUT naming the holder, when another holds it for longer than the timeout; what making a `FileLock`
 *   throws
 */
export function withFileLock<T>(path: string, fn: () => T, options: FileLockOptions = {}): T {
  const timeoutMs = options.timeoutMs ?? 10_000;
  const deadline = performance.now() + timeoutMs;
  const lock = new FileLock(path);
  try {
    const gate = options.gate === undefined ? undefined : new FileLock(options.gate);
    try {
      // Behind the gate somebody waits for the lock as a rule, and then it is the lock's holder who keeps all waiting.
      if (gate && !takeInTime(gate, options, deadline)) throw timedOut(lock.tryTake(options) ? gate : lock, timeoutMs);
      if (!takeInTime(lock, options, deadline)) throw timedOut(lock, timeoutMs);
    } finally {
      gate?.close();
      if (gate && !options.shared) tellOfRelease();
    }
    return fn();
  } finally {
    lock.close();
    tellOfRelease();
  }
}

/** Whether the lock is held now; looks again until the deadline. */
function takeInTime(lock: FileLock, options: FileLockOptions, deadline: number): boolean {
  let pollMs = SHORTEST_POLL_MS;
  for (let seen = releaseCount(); !lock.tryTake(options); seen = releaseCount()) {
    if (performance.now() >= deadline) return false;
    Atomics.wait(releases, 0, seen, pollMs);
    pollMs = Math.min(2 * pollMs, LONGEST_POLL_MS);
  }
  return true;
}

function timedOut(lock: FileLock, timeoutMs: number): NodeplaneError {
  const { path } = lock;
  const holder = lock.holder();
  return new NodeplaneError('ERR_LOCK_TIMEOUT', `Waited ${timeoutMs} ms for the lock "${path}", held by ${holder}`, {
    facts: { path, timeoutMs, holder },
  });
}

/** Wakes the threads of this process that wait for a lock. */
function tellOfRelease(): void {
  Atomics.add(releases, 0, 1);
  Atomics.notify(releases, 0);
}

function releaseCount(): number {
  return Atomics.load(releases, 0);
}

function closeToOthers(fd: number, path: string): void {
  const stat = fstatSync(fd);
  const objection = !stat.isFile()
    ? 'it is no regular file'
    : isTrusted(stat.uid)
      ? undefined
      : `it belongs to user ${stat.uid}, who could hold it for ever`;
  if (objection) {
    throw new NodeplaneError(
      'ERR_UNSAFE_PATH',
      `Cannot lock "${path}": ${objection}; remove it, and it is made again`,
      {
        facts: { path },
      },
    );
  }
  if ((stat.mode & OPEN_TO_OTHERS) !== 0) fchmodSync(fd, 0o600);
}

import { readFileSync, statSync } from 'node:fs';

/** A process that took a lock. */
export interface LockHolder {
  readonly pid: number;
  /** The name of its program (/proc/PID/comm); undefined when it has ended, and a process it started keeps the lock. */
  readonly program: string | undefined;
}

/**
 * Who holds flock(2) on a file, as /proc/locks tells (proc_locks(5)). Processes outside of our PID namespace are not
 * listed there.
 *
 * @returns none when nobody holds it, or nobody whom we may see, or there is no such file
 */
export function lockHoldersOf(path: string): LockHolder[] {
  try {
    const { ino } = statSync(path);
    return parseFlocks(readFileSync('/proc/locks', 'utf8'))
      .filter((lock) => lock.inode === ino)
      .map(({ pid }) => ({ pid, program: programOf(pid) }));
  } catch {
    return [];
  }
}

/**
 * The granted flocks of a /proc/locks. The device is left alone: on overlay and btrfs stat(2) names another one than the
 * lock's, and two locked files rarely share an inode number.
 */
export function parseFlocks(text: string): { readonly pid: number; readonly inode: number }[] {
  // `2: FLOCK  ADVISORY  WRITE 16134 fe:00:2154728 0 EOF`; somebody who waits has `->` after the number.
  return [...text.matchAll(/^\d+: FLOCK +\S+ +\S+ +(\d+) +[0-9a-f]+:[0-9a-f]+:(\d+) /gm)].map(([, pid, inode]) => ({
    pid: Number(pid),
    inode: Number(inode),
  }));
}

function programOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return undefined;
  }
}

import { readFileSync, type Stats } from 'node:fs';
import { attempt } from '../../core/index.ts';

/** A process that holds a lock. */
export interface LockHolder {
  readonly pid: number;
  /** What it calls itself (comm); undefined when it has just ended. */
  readonly program: string | undefined;
}

/**
 * Who holds flock(2) or another lock on a file, by /proc/locks (proc_locks(5)): lines like
 * `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF`, with `->` behind the number for those that wait. Undefined when nobody
 * does, or only processes that cannot be seen from this pid namespace, which the kernel leaves out.
 *
 * @param file what fstat(2) says about the locked file
 */
export function lockHolder({ dev, ino }: Pick<Stats, 'dev' | 'ino'>): LockHolder | undefined {
  const held = linesOf('/proc/locks').flatMap((line) => {
    const [, pid, major, minor, inode] = /^\d+: \w+ +\S+ +\w+ +(\d+) +([0-9a-f]+):([0-9a-f]+):(\d+) /.exec(line) ?? [];
    return inode === String(ino) ? [{ pid: Number(pid), device: `${major}:${minor}` }] : [];
  });
  // Layered file systems (overlayfs, btrfs) show files under another device than the one that is locked.
  const holder = held.find(({ device }) => device === deviceOf(dev)) ?? held[0];
  return holder && { pid: holder.pid, program: linesOf(`/proc/${holder.pid}/comm`)[0] };
}

/** The same in words: `process 1234 (flock)`. */
export function describeLockHolder(file: Pick<Stats, 'dev' | 'ino'>): string {
  const holder = lockHolder(file);
  if (!holder) return 'a process that cannot be seen from here';
  if (holder.pid === process.pid) return `another thread of this process (${holder.pid})`;
  return holder.program ? `process ${holder.pid} (${holder.program})` : `process ${holder.pid}`;
}

/** As /proc/locks writes it: major and minor number in hexadecimal digits, at least two each. The number is glibc's dev_t. */
function deviceOf(dev: number): string {
  const number = BigInt(dev);
  const major = ((number >> 8n) & 0xfffn) | ((number >> 32n) & ~0xfffn);
  const minor = (number & 0xffn) | ((number >> 12n) & ~0xffn & 0xffffffffn);
  return [major, minor].map((part) => part.toString(16).padStart(2, '0')).join(':');
}

function linesOf(path: string): string[] {
  return attempt(() => readFileSync(path, 'utf8').split('\n')) ?? [];
}

import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { KernelError } from '../core/index.ts';

// Everything below /proc/sys/net is per network namespace of the calling thread; run inside `inNetns` for another one.

/** Reads a sysctl such as `net/ipv4/ip_forward`, trimmed. Throws KernelError (ENOENT when this kernel has none). */
export function readSysctl(name: string): string {
  try {
    return readFileSync(`/proc/sys/${name}`, 'utf8').trim();
  } catch (cause) {
    throw sysctlError('read sysctl', name, cause);
  }
}

/** Writes a sysctl only if it differs, so that a read-only /proc with the right value is no error. True if written. */
export function writeSysctl(name: string, value: string | number): boolean {
  const text = String(value);
  let fd: number;
  try {
    // Once for both: with many network namespaces it takes the kernel long to find the name in this one.
    fd = openSync(`/proc/sys/${name}`, 'r+');
  } catch (cause) {
    if (readSysctl(name) === text) return false;
    throw sysctlError('write sysctl', `${name}=${text}`, cause);
  }
  try {
    if (readFileSync(fd, 'utf8').trim() === text) return false;
    // At the beginning: elsewhere the kernel ignores it.
    writeSync(fd, text, 0);
    return true;
  } catch (cause) {
    throw sysctlError('write sysctl', `${name}=${text}`, cause);
  } finally {
    closeSync(fd);
  }
}

function sysctlError(operation: string, object: string, cause: unknown): KernelError {
  const errno = (cause as NodeJS.ErrnoException).errno ?? -osConstants.errno.EIO;
  return new KernelError('ERR_SYSCALL', { operation, object, errno: -errno, cause });
}

import { closeSync, fchmodSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ifPresent, NodeplaneError } from '../../../core/index.ts';
import { syncFolder } from '../../../sys/index.ts';

/**
 * Puts a file in place durably and at once: others see the old one or all of the new one, and a program that runs from the
 * old one goes on (a live program cannot be written to, ETXTBSY). The temporary file lies in the same directory under a
 * name no runtime takes for a plugin or a configuration.
 *
 * @throws ERR_CNI_INSTALL
 */
export function placeFile(path: string, content: Uint8Array, mode: number): void {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    writeSynced(temporary, content, mode);
    renameSync(temporary, path);
    syncFolder(dirname(path));
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw new NodeplaneError('ERR_CNI_INSTALL', `Cannot write "${path}"`, { facts: { path }, cause });
  }
}

/** Removes a file durably. Returns whether there was one. Throws ERR_CNI_INSTALL. */
export function removeFile(path: string): boolean {
  try {
    if (readIfThere(path) === undefined) return false;
    rmSync(path);
    syncFolder(dirname(path));
    return true;
  } catch (cause) {
    throw new NodeplaneError('ERR_CNI_INSTALL', `Cannot remove "${path}"`, { facts: { path }, cause });
  }
}

/** Undefined when there is no such file, or no such directory. */
export function readIfThere(path: string): Buffer | undefined {
  return ifPresent(() => readFileSync(path));
}

function writeSynced(path: string, content: Uint8Array, mode: number): void {
  // Left by a process of the same number that was killed.
  rmSync(path, { force: true });
  const fd = openSync(path, 'wx', mode);
  try {
    for (let at = 0; at < content.length; ) at += writeSync(fd, content, at);
    // Whatever the umask is.
    fchmodSync(fd, mode);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

import { readFileSync, rmSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ifPresent, NodeplaneError } from '../../../core/index.ts';
import { syncFolder } from '../../../sys/index.ts';

/**
 * Puts a file in place durably and at once: others see the old one or all of the new one, and a program that runs from the
 * old one goes on (a live program cannot be written to, ETXTBSY). The temporary file lies in the same directory under a
 * name no runtime takes for a plugin or a configuration. A disk that is slow holds up nobody else.
 *
 * @throws rejects with ERR_CNI_INSTALL
 */
export async function placeFile(path: string, content: Uint8Array, mode: number): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.tmp`);
  try {
    await writeSynced(temporary, content, mode);
    await rename(temporary, path);
    await syncNames(dirname(path));
  } catch (cause) {
    await rm(temporary, { force: true });
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

async function writeSynced(path: string, content: Uint8Array, mode: number): Promise<void> {
  // Left by a process of the same number that was killed.
  await rm(path, { force: true });
  const file = await open(path, 'wx', mode);
  try {
    await file.writeFile(content);
    // Whatever the umask is.
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** As `syncFolder`, without holding up the thread. */
async function syncNames(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Waits until the names in a folder are on disk, those that rename(2) gave included. Throws the system's error. */
export function syncFolder(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

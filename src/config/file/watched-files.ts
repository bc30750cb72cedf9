import { realpathSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { readGivenFile } from '../../core/index.ts';
import type { WatchedFiles } from './config-watch.ts';

/** The real file system, watched with inotify. */
export const systemFiles: WatchedFiles = {
  readFile: (path) => readGivenFile(path).toString('utf8'),
  foldersOf(path) {
    try {
      // A mounted ConfigMap changes in the first folder (its link ..data), an edited target of a link in the second.
      return [...new Set([dirname(path), dirname(realpathSync(path))])];
    } catch {
      return [dirname(path)];
    }
  },
  watch(folder, changed, failed) {
    const watcher = watch(folder, { persistent: false }, changed);
    watcher.on('error', failed);
    return watcher;
  },
};

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));

/** The path of a file of the repository, from its root: `.cache/containerd`. */
export function repositoryFile(path: string): string {
  return join(HERE, isBuilt() ? '..' : '../..', path);
}

/**
 * The built programs: `nodeplane`, `nodeplane-cni`, `netns-worker.js`. They lie beside this file when it is part of a
 * built program itself, else in dist/ of the repository.
 */
export function builtProgram(name: string): string {
  const folder = isBuilt() ? HERE : join(HERE, '../../dist');
  const path = join(folder, name);
  if (!existsSync(path)) throw new Error(`Cannot find the built program "${path}": run "npm run build"`);
  return path;
}

/** Whether this file is part of a built program. */
function isBuilt(): boolean {
  return existsSync(join(HERE, 'netns-worker.js'));
}

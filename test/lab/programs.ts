import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The built programs: `nodeplane`, `nodeplane-cni`, `netns-worker.js`. They lie beside this file when it is part of a
 * built program itself, else in dist/ of the repository.
 */
export function builtProgram(name: string): string {
  const here = dirname(fileURLToPath(import.meta.url));
  const folder = existsSync(join(here, 'netns-worker.js')) ? here : join(here, '../../dist');
  const path = join(folder, name);
  if (!existsSync(path)) throw new Error(`Cannot find the built program "${path}": run "npm run build"`);
  return path;
}

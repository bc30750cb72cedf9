import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { attempt } from '../../core/index.ts';
import { netnsIdentity } from './netns.ts';

/** Where container runtimes, and Docker, give namespaces names. */
const FOLDERS = ['/run/netns', '/run/docker/netns'];

/**
 * Paths of the network namespaces that can be seen from here, one for each but the calling thread's own: those with a name first, then
 * those of processes alone. None where there is neither /run/netns nor the processes of the host, as in a container without them.
 */
export function otherNetns(): string[] {
  const paths = new Map<string, string>();
  for (const path of candidates()) {
    const identity = attempt(() => netnsIdentity(path));
    if (identity !== undefined && !paths.has(identity)) paths.set(identity, path);
  }
  paths.delete(netnsIdentity('/proc/thread-self/ns/net'));
  return [...paths.values()];
}

function* candidates(): Generator<string> {
  for (const folder of FOLDERS) for (const name of attempt(() => readdirSync(folder)) ?? []) yield join(folder, name);
  for (const name of readdirSync('/proc')) if (/^\d+$/.test(name)) yield `/proc/${name}/ns/net`;
}

import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { NODE_PATHS } from '../../core/index.ts';
import { makeOwnDirectory, withFileLock } from '../../sys/index.ts';

/** Whether the directory was looked at, by this thread: once is enough, nobody but root could make it another one. */
let checked = false;

/**
 * Runs the synchronous `fn` while no other plugin process of this node changes what pods share: the bridge and its
 * addresses, the rules of a network. Namespaces of a machine that see the same /run share the lock; it is held for
 * milliseconds. The file is one that root alone can open: what others can open, such as the namespace's own file in
 * /proc, they can lock and never let go.
 *
 * @param options `shared`: `fn` itself changes none of that, but relies on it; several may do so at a time,
 *   and however many follow each other, who changes something gets its turn
 * @throws ERR_LOCK_TIMEOUT; ERR_UNSAFE_PATH when others could replace the lock
 */
export function withNodeLock<T>(fn: () => T, options: { readonly shared?: boolean } = {}): T {
  const directory = dirname(NODE_PATHS.nodeLock);
  if (!checked || !existsSync(directory)) makeOwnDirectory(directory, 'the lock of the node');
  checked = true;
  return withFileLock(NODE_PATHS.nodeLock, fn, { ...options, gate: NODE_PATHS.nodeGate });
}

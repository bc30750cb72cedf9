import { withFileLock } from '../sys/index.ts';

/**
 * Runs the synchronous `fn` while no other plugin process of this node changes what pods share: the bridge and its
 * addresses. The lock is on the namespace's own file, so that it covers exactly the links it protects and leaves no file.
 *
 * @throws ERR_LOCK_TIMEOUT
 */
export function withNodeLock<T>(fn: () => T): T {
  return withFileLock('/proc/thread-self/ns/net', fn, { create: false });
}

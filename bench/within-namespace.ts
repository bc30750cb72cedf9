import { enterNetns, openNetns } from '../src/sys/index.ts';

/**
 * Moves this process's main thread into a network namespace while `work` runs, so that its sockets and the programs it
 * starts are there. Unlike `inNetns` it may await: a benchmark does nothing else meanwhile.
 */
export async function withinNamespace<T>(path: string, work: () => Promise<T>): Promise<T> {
  const own = openNetns('/proc/thread-self/ns/net');
  try {
    enterNetns(path);
    return await work();
  } finally {
    enterNetns(`/proc/self/fd/${own.fd}`);
    own.close();
  }
}

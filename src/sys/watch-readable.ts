import { readSync, writeSync } from 'node:fs';
import { inBackground, systemClock, tellFailure } from '../core/index.ts';
import { libc } from './libc.ts';

const EFD_CLOEXEC = 0o2000000;
const EFD_NONBLOCK = 0o4000;
const POLLIN = 1;
/** How long nobody waits for the descriptors after waiting failed, for want of memory or descriptors. */
const RETRY_MS = 1000;
const ONE = Buffer.from(new BigUint64Array([1n]).buffer);

/** What is watched, with what to call. Descriptors are shared by the process, and so is the thread that waits for them. */
const watched = new Map<number, () => void>();
/** Whether somebody waits for them, or will again. */
let waiting = false;
/** Interrupts the waiting thread; undefined while there is none. */
let waker: number | undefined;

/**
 * Calls `callback` from the event loop whenever a descriptor can be read, until the function returned is called. Node
 * itself waits only for descriptors of the kinds it knows, of which netlink sockets are none.
 *
 * `callback` reads everything that is there: it is called again as long as something is. However many descriptors are
 * watched, one thread of Node's pool waits for all of them, and the process does not end before none is watched any more.
 * The descriptor may be closed once the watching has ended. What `callback` throws is told, and harms no other.
 */
export function watchReadable(fd: number, callback: () => void): () => void {
  watched.set(fd, callback);
  if (!waiting) keepWaiting();
  else wake();
  return () => {
    if (watched.get(fd) !== callback) return;
    watched.delete(fd);
    wake();
  };
}

/** Until nothing is watched any more. */
function keepWaiting(): void {
  waiting = true;
  waitForAll().then(
    () => {
      waiting = false;
      // Watched since the last look at what there is to watch.
      if (watched.size > 0) keepWaiting();
    },
    (error) => {
      tellFailure('descriptor watch', error);
      systemClock.setTimer(keepWaiting, RETRY_MS);
    },
  );
}

async function waitForAll(): Promise<void> {
  const own = libc().eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  waker = own;
  // At its end the process waits for the threads of the pool.
  process.on('exit', wake);
  try {
    while (watched.size > 0) {
      const ready = await libc().pollAsync([own, ...watched.keys()], POLLIN, -1);
      if (ready.includes(own)) readSync(own, Buffer.alloc(8));
      for (const fd of ready) inBackground('descriptor watch', () => watched.get(fd)?.());
    }
  } finally {
    waker = undefined;
    process.off('exit', wake);
    libc().close(own);
  }
}

function wake(): void {
  if (waker !== undefined) writeSync(waker, ONE);
}

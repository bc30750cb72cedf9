// A program of two threads, as the agent has them, that share the lock of the node without a pause: each takes it again as soon
// as it has given it back, and holds it while another one has it too.
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { withNodeLock } from '../../../src/cni/link/node-lock.ts';
import { lockReleases, shareLockReleases, sleepSync } from '../../../src/sys/index.ts';

/** How long the lock is held at a time: all holders would have to end within the microseconds in which one takes it anew. */
const HELD_MS = 60;

if (isMainThread) {
  new Worker(process.argv[1]!, { workerData: lockReleases() });
  setImmediate(share);
} else {
  shareLockReleases(workerData as SharedArrayBuffer);
  sleepSync(HELD_MS / 4);
  share();
}

function share(): void {
  for (let times = 0; ; times++) {
    withNodeLock(() => sleepSync(HELD_MS), { shared: true });
    if (times === 1) process.stdout.write('shared\n');
  }
}

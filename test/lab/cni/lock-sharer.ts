// A program of two threads, as the agent has them, that share the lock of the node without a pause: each takes it again as soon
// as it has given it back, and holds it while another one has it too.
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { NODE_PATHS } from '../../../src/core/index.ts';
import { lockReleases, makeOwnDirectory, shareLockReleases, sleepSync, withFileLock } from '../../../src/sys/index.ts';

/** How long the lock is held at a time: all holders would have to end within the microseconds in which one takes it anew. */
const HELD_MS = 60;

if (isMainThread) {
  makeOwnDirectory(NODE_PATHS.runDir, 'a test');
  new Worker(process.argv[1]!, { workerData: lockReleases() });
  setImmediate(share);
} else {
  shareLockReleases(workerData as SharedArrayBuffer);
  sleepSync(HELD_MS / 4);
  share();
}

function share(): void {
  for (let times = 0; ; times++) {
    withFileLock(NODE_PATHS.nodeLock, () => sleepSync(HELD_MS), { shared: true, gate: NODE_PATHS.nodeGate });
    if (times === 1) process.stdout.write('shared\n');
  }
}

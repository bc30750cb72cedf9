// The thread of one request at a time: the kernel is asked synchronously, which would keep the agent from other things and
// other requests from being served.
import { parentPort, workerData } from 'node:worker_threads';
import { keepSocketsOpen, leaveObstaclesToAgent, runCni } from '../../../cni/index.ts';
import { onOwnPorts, ownPorts, shareOwnCommits } from '../../../netlink/nftables/index.ts';
import { DescriptorLedger, noteDescriptorsIn, shareLockReleases, useProcSysRoot } from '../../../sys/index.ts';
import { lookAtLinks } from '../guard/look-at-links.ts';
import { reclaimNode } from '../guard/reclaim-node.ts';
import type { PortNotice, ThreadStart } from './server-thread.ts';
import type { WorkerTask } from './tasks.ts';

const start = workerData as ThreadStart;
noteDescriptorsIn(new DescriptorLedger(start.ledger));
useProcSysRoot(start.procSysRoot);
shareLockReleases(start.lockReleases);
shareOwnCommits(start.ownCommits);
keepSocketsOpen();
leaveObstaclesToAgent();
onOwnPorts(() => parentPort?.postMessage({ nftPorts: ownPorts() } satisfies PortNotice));
parentPort?.on('message', async (task: WorkerTask) => {
  // What throws ends the thread, and the pool answers for it.
  parentPort?.postMessage(await resultOf(task));
});

function resultOf(task: WorkerTask) {
  if ('reclaim' in task) return reclaimNode(task.reclaim);
  return 'links' in task ? lookAtLinks(task) : runCni(task);
}

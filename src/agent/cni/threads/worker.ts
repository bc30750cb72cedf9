// The thread of one request at a time: the kernel is asked synchronously, which would keep the agent from other things and
// other requests from being served.
import { parentPort, workerData } from 'node:worker_threads';
import { type CniReply, type CniRequest, keepSocketsOpen, runCni } from '../../../cni/index.ts';
import { onOwnPorts, ownPorts } from '../../../netlink/nftables/index.ts';
import { DescriptorLedger, noteDescriptorsIn, useProcSysRoot } from '../../../sys/index.ts';
import { type ReclaimReport, reclaimNode } from '../guard/reclaim-node.ts';
import type { PortNotice, ThreadStart } from './server-thread.ts';

/** A request of the plugin; descriptors are the process's, so that their numbers mean the same here. */
export type WorkerRequest = Omit<CniRequest, 'stdin'> & { readonly stdin: string };
/** Directories of reservations to look through for what pods left that are gone. */
export interface ReclaimTask {
  readonly reclaim: readonly string[];
}

export type WorkerTask = WorkerRequest | ReclaimTask;
export type WorkerReply<T extends WorkerTask> = T extends ReclaimTask ? ReclaimReport : CniReply;

const start = workerData as ThreadStart;
noteDescriptorsIn(new DescriptorLedger(start.ledger));
useProcSysRoot(start.procSysRoot);
keepSocketsOpen();
onOwnPorts(() => parentPort?.postMessage({ nftPorts: ownPorts() } satisfies PortNotice));
parentPort?.on('message', async (task: WorkerTask) => {
  // What throws ends the thread, and the pool answers for it.
  parentPort?.postMessage('reclaim' in task ? await reclaimNode(task.reclaim) : await runCni(task));
});

// The thread of one request at a time: the kernel is asked synchronously, which would keep the agent from other things and
// other requests from being served.
import { parentPort, workerData } from 'node:worker_threads';
import { type CniReply, type CniRequest, keepConversations, runCni } from '../../cni/index.ts';
import { collectNode } from './collect-node.ts';

/** What the pool sends; descriptors are the process's, so that their numbers mean the same here. */
export type WorkerRequest = Omit<CniRequest, 'stdin'> & { readonly stdin: string };
export type WorkerReply = CniReply;
/** What a thread is begun with that collects, once, in place of serving requests. */
export interface CollectTask {
  readonly collect: readonly string[];
}

const task = workerData as CollectTask | undefined;
if (task?.collect) {
  // What it throws ends the thread, and the collector hears of it.
  void collectNode(task.collect).then((report) => parentPort?.postMessage(report));
} else {
  keepConversations();
  parentPort?.on('message', async (request: WorkerRequest) => {
    // A request that throws ends the thread, and the pool answers for it.
    parentPort?.postMessage(await runCni(request));
  });
}

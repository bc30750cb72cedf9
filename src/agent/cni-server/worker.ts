// The thread of one request at a time: the kernel is asked synchronously, and removing a link makes it wait for tens of
// milliseconds, in which the agent has other things to do and other requests can be served.
import { parentPort } from 'node:worker_threads';
import { type CniReply, type CniRequest, runCni } from '../../cni/index.ts';

/** What the pool sends; descriptors are the process's, so that their numbers mean the same here. */
export type WorkerRequest = Omit<CniRequest, 'stdin'> & { readonly stdin: string };
export type WorkerReply = CniReply;

parentPort?.on('message', async (request: WorkerRequest) => {
  // A request that throws ends the thread, and the pool answers for it.
  parentPort?.postMessage(await runCni(request));
});

// The thread of one request at a time: the kernel is asked synchronously, which would keep the agent from other things and
// other requests from being served.
import { parentPort } from 'node:worker_threads';
import { type Attached, type CniReply, type CniRequest, keepConversations, runCni } from '../../cni/index.ts';

/** What the pool sends; descriptors are the process's, so that their numbers mean the same here. */
export type WorkerRequest = Omit<CniRequest, 'stdin' | 'attached'> & { readonly stdin: string };
export interface WorkerReply extends CniReply {
  /** What a successful ADD put into nftables. */
  readonly attached?: Attached | undefined;
}

keepConversations();
parentPort?.on('message', async (request: WorkerRequest) => {
  // A request that throws ends the thread, and the pool answers for it.
  let attached: Attached | undefined;
  const note = (made: Attached) => {
    attached = made;
  };
  const reply: WorkerReply = await runCni({ ...request, attached: note });
  parentPort?.postMessage({ ...reply, ...(reply.exitCode === 0 && { attached }) });
});

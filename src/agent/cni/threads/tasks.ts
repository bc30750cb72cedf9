import type { CniReply, CniRequest } from '../../../cni/index.ts';
import type { LinkReport, LinkTask } from '../guard/look-at-links.ts';
import type { ReclaimReport } from '../guard/reclaim-node.ts';

/** A request of the plugin; descriptors are the process's, so that their numbers mean the same in a thread. */
export type WorkerRequest = Omit<CniRequest, 'stdin'> & { readonly stdin: string };

/** Directories of reservations to look through for what pods left that are gone. */
export interface ReclaimTask {
  readonly reclaim: readonly string[];
}

/** What a thread is given to do, and what it answers. */
export type WorkerTask = WorkerRequest | ReclaimTask | LinkTask;
export type WorkerReply<T extends WorkerTask> = T extends ReclaimTask
  ? ReclaimReport
  : T extends LinkTask
    ? LinkReport
    : CniReply;

import { existsSync, readFileSync } from 'node:fs';
import type { Facts } from '../../iptables/index.ts';

/** Of the network namespace this thread is in. */
const FOLDER = '/proc/thread-self/net/netfilter';

/** The queues of packets that a process has bound, read once. Without their module, which who binds one loads, there are none. */
export function packetQueuesHere(): Required<Pick<Facts, 'isQueueHeard'>>['isQueueHeard'] {
  let bound: ReadonlySet<number> | undefined;
  return (queue) => {
    if (!existsSync(FOLDER)) return undefined;
    const file = `${FOLDER}/nfnetlink_queue`;
    bound ??= parseQueues(existsSync(file) ? readFileSync(file, 'utf8') : '');
    return bound.has(queue);
  };
}

/** The numbers of queues as the kernel prints them (seq_show, net/netfilter/nfnetlink_queue.c): a line each. Exported for tests. */
export function parseQueues(text: string): ReadonlySet<number> {
  return new Set([...text.matchAll(/^ *(\d+) /gm)].map(([, number]) => Number(number)));
}

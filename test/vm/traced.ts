import { setTimeout as delay } from 'node:timers/promises';
import { showTrace, type TraceReport } from '../../src/agent/trace/index.ts';
import { enterNetns, openNetns } from '../../src/sys/index.ts';
import type { Host } from '../lab/lab.ts';
import { patient } from '../lab/patience.ts';

/** What is traced. */
export interface Traced {
  readonly source: string;
  readonly destination: string;
  /** @default tcp */
  readonly protocol?: string;
  /** In seconds. @default 20 */
  readonly live?: number;
}

/** Traces within this process, in whatever namespace it is, while something is sent. */
export async function traced(
  { source, destination, protocol = 'tcp', live = 20 }: Traced,
  send: () => Promise<unknown>,
): Promise<TraceReport> {
  // Nobody listens there: names of Services are not asked for.
  const agent = { address: '127.0.0.1:1', probe: false, payload: undefined };
  const shown = showTrace({ ...agent, source, destination, protocol, live: `${live}s`, json: true });
  await delay(patient(1000));
  await send();
  return JSON.parse((await shown).stdout) as TraceReport;
}

/** As `traced`, on a node. */
export async function tracedFrom(node: Host, what: Traced, send: () => Promise<unknown>): Promise<TraceReport> {
  const own = openNetns('/proc/thread-self/ns/net');
  try {
    enterNetns(node.namespace.path);
    return await traced(what, send);
  } finally {
    enterNetns(`/proc/self/fd/${own.fd}`);
    own.close();
  }
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Agent } from '../../test/lab/lab.ts';
import { type ApiCluster, peakResidentMiB, residentMiB, syncs } from '../api-cluster.ts';
import { processorMs } from './process-figures.ts';

const START_TIMEOUT_MS = 120_000;
/** The syncs of both families are the first ones; what follows them (other modes' traces, say) belongs to a start too. */
const SETTLED_MS = 1500;
/** After what an agent gives back of its start's memory ten seconds after it began. */
const REST_MS = 15_000;

/** One start. */
export interface MeasuredStart {
  /** Processor time until the first syncs stood, in milliseconds. */
  readonly processorMs: number;
  /** The same, in elapsed time. */
  readonly elapsedMs: number;
  /** What of the elapsed time the kernel took for the IPv4 rules. */
  readonly kernelMs: number;
  /** Most ever resident until then, in MiB. */
  readonly peakMiB: number;
  /** Resident fifteen seconds later; undefined: that was not waited for. */
  readonly restingMiB: number | undefined;
  /** The event loop was at most this late, in milliseconds: a bound of the agent's own histogram. Infinity: later than all bounds. */
  readonly longestPauseMs: number;
}

/**
 * Starts an agent that finds nothing of ours in the kernel, and ends it.
 *
 * @param build the folder of another build. @default this one's
 */
export async function measureStart(
  { node, kubeconfig }: ApiCluster,
  flags: readonly string[],
  { build, untilRest }: { readonly build: string | undefined; readonly untilRest: boolean },
): Promise<MeasuredStart> {
  const common = { program: 'kube-proxy', until: 'started', ...(build !== undefined && { build }) } as const;
  const began = Date.now();
  const agent = await node.startAgent({
    ...common,
    flags: ['--kubeconfig', kubeconfig, ...flags],
    log: `start-${began}`,
  });
  const synced = await firstSync(agent);
  const figures = {
    processorMs: processorMs(agent.pid),
    elapsedMs: synced - began,
    kernelMs: syncs(agent, true)[0]!.kernelMs,
    peakMiB: peakResidentMiB(agent),
  };
  await delay(untilRest ? REST_MS : SETTLED_MS);
  const restingMiB = untilRest ? residentMiB(agent) : undefined;
  const longestPauseMs = longestPause(await agent.metrics());
  await agent.stop();
  // Rules stay in the kernel otherwise, and the next start would have less to do.
  const { ended } = await node.startAgent({ ...common, flags: ['--cleanup'], log: `cleanup-${began}` });
  if ((await ended) !== 0) throw new Error('The rules of the agent cannot be removed');
  return { ...figures, restingMiB, longestPauseMs };
}

/** When, in milliseconds since the epoch, the first full sync of IPv4, the last of those that write much, stood. */
export async function firstSync(agent: Agent): Promise<number> {
  let end: number | undefined;
  void agent.ended.then((status) => {
    end = status;
  });
  for (const deadline = Date.now() + START_TIMEOUT_MS; Date.now() < deadline; await delay(5)) {
    const line = agent.logs().find(({ msg, family, full }) => msg === 'Synced' && family === 'IPv4' && full === true);
    if (line) return Date.parse(String(line.time));
    if (end !== undefined) throw new Error(`The agent ended with status ${end} at its start: see ${agent.logFile}`);
  }
  throw new Error(`The agent has not synced within ${START_TIMEOUT_MS} ms: see ${agent.logFile}`);
}

const BUCKET = /^nodeplane_event_loop_delay_seconds_bucket\{.*?le="([^"]+)".*?\} (\d+)$/gm;

/** The lowest bound of nodeplane_event_loop_delay_seconds that all of its looks kept, in milliseconds; NaN where it is not measured. */
export function longestPause(metrics: string): number {
  const buckets = [...metrics.matchAll(BUCKET)].map(([, bound, count]) => [bound!, Number(count)] as const);
  const all = buckets.at(-1)?.[1];
  const bound = buckets.find(([, count]) => count === all)?.[0];
  return bound === '+Inf' ? Number.POSITIVE_INFINITY : Number(bound) * 1000;
}

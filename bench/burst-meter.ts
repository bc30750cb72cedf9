/** How long operations of one kind took, in milliseconds. */
export interface Latency {
  readonly meanMs: number;
  /** Within a bucket of the histogram as if its operations were spread evenly. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** What containerd calls its two operations of CNI: ADDs of a sandbox, and DELs. */
export type NetworkOperation = 'set_up_pod' | 'tear_down_pod';

/** Containerd 1.6 names the unit twice. */
const HISTOGRAM =
  /^containerd_cri_network_plugin_operations_duration_seconds(?:_seconds)?_(bucket|sum|count)\{(.*)\} (\S+)$/;

interface Histogram {
  sum: number;
  count: number;
  /** Operations of at most so many seconds. */
  readonly upTo: Map<number, number>;
}

/**
 * What an operation took between two looks at containerd's metrics.
 *
 * @param before its metrics in the Prometheus text format, and after
 */
export function networkLatency(before: string, after: string, operation: NetworkOperation): Latency {
  const [first, last] = [read(before, operation), read(after, operation)];
  const count = last.count - first.count;
  if (!(count > 0))
    throw new Error(`Containerd tells of no operation "${operation}"; does its metric have another name?`);
  const upTo = [...last.upTo].map(([le, n]) => [le, n - (first.upTo.get(le) ?? 0)] as const).sort(([a], [b]) => a - b);
  return {
    meanMs: (1000 * (last.sum - first.sum)) / count,
    p50Ms: 1000 * quantile(upTo, 0.5 * count),
    p99Ms: 1000 * quantile(upTo, 0.99 * count),
  };
}

/** As histogram_quantile() of Prometheus: in the last bucket, which has no end, its beginning. */
function quantile(upTo: readonly (readonly [le: number, count: number])[], rank: number): number {
  let [from, below] = [0, 0];
  for (const [le, count] of upTo) {
    if (count >= rank) return Number.isFinite(le) ? from + ((le - from) * (rank - below)) / (count - below) : from;
    [from, below] = [le, count];
  }
  return from;
}

function read(metrics: string, operation: NetworkOperation): Histogram {
  const histogram: Histogram = { sum: 0, count: 0, upTo: new Map() };
  for (const line of metrics.split('\n')) {
    const [, kind, labels = '', value] = HISTOGRAM.exec(line) ?? [];
    if (!labels.includes(`operation_type="${operation}"`)) continue;
    if (kind === 'sum') histogram.sum = Number(value);
    else if (kind === 'count') histogram.count = Number(value);
    else histogram.upTo.set(Number(/le="([^"]+)"/.exec(labels)![1]!.replace('+Inf', 'Infinity')), Number(value));
  }
  return histogram;
}

import { Gauge, Histogram, type Registry } from 'prom-client';
import { type ProxyMode, type ProxyObserver, SYNC_BUCKETS } from '../../proxy/index.ts';

export interface NodeplaneMetricsOptions {
  readonly registry: Registry;
  /** Our own version. */
  readonly version: string;
  readonly mode: ProxyMode;
  /**
   * For each watched resource, seconds since the API server was last heard of about it, or since the start where it never was;
   * asked at each scrape.
   * @default none, as without an API server
   */
  readonly watchAges?: () => Iterable<readonly [resource: string, seconds: number]>;
}

/** Registers the metrics kube-proxy has no counterpart of, and returns the observer that feeds them. */
export function nodeplaneMetrics({ registry, version, mode, watchAges }: NodeplaneMetricsOptions): ProxyObserver {
  const registers = [registry];
  new Gauge({
    name: 'nodeplane_build_info',
    help: 'Always 1; the labels say what runs.',
    labelNames: ['version', 'node_version', 'mode'],
    registers,
  }).set({ version, node_version: process.version, mode }, 1);
  if (watchAges) {
    new Gauge({
      name: 'nodeplane_watch_age_seconds',
      help: 'Seconds since the API server was last heard of about a resource; what is known may be older than that.',
      labelNames: ['resource'],
      registers,
      collect() {
        this.reset();
        for (const [resource, seconds] of watchAges()) this.set({ resource }, seconds);
      },
    });
  }
  const commits = new Histogram({
    name: 'nodeplane_kernel_commit_seconds',
    help: 'Seconds the kernel, or the program that talks to it, took for one sync.',
    labelNames: ['ip_family'],
    // The two are looked at together.
    buckets: SYNC_BUCKETS,
    registers,
  });
  return (event) => {
    if (event.kind !== 'syncFinished' || !event.commit) return;
    commits.observe({ ip_family: event.family }, event.commit.kernelSeconds);
  };
}

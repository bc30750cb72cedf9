import { Counter, collectDefaultMetrics, Gauge, type MetricObject, type Registry } from 'prom-client';

/** Which build of nodeplane runs. */
export interface Build {
  /** `0.3.0` */
  readonly version: string;
  /** Of git; empty: built outside of it. */
  readonly commit: string;
  /** When the commit was made, RFC 3339; empty like it. */
  readonly date: string;
  /** Whether what was built is that commit; empty like it. */
  readonly tree: 'clean' | 'dirty' | '';
}

/** The same in the words of Kubernetes. What is empty is an empty label. */
export interface BuildFacts extends Build {
  /**
   * The release of kube-proxy we behave like, with the suffix that --version asks for: `v1.36.2`. Later that of the API
   * server, where there is one.
   */
  readonly kubernetesVersion: string;
}

export interface ComponentMetricsOptions {
  readonly registry: Registry;
  readonly build: BuildFacts;
  /** All feature gates by name (`FeatureGates` of the configuration). */
  readonly features: ReadonlyMap<string, { readonly stage: string; readonly enabled: boolean }>;
}

/** Of prom-client, all out of one measure that wakes the processor each time. EventLoopDelay has a frugal one. */
const EVENT_LOOP_METRICS = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'].map(
  (name) => `nodejs_eventloop_lag_${name}_seconds`,
);
/** That measure cannot be left out, but asked for seldom. */
const AT_REST_MS = 24 * 3_600_000;

/**
 * Registers what every Kubernetes component shows of itself (k8s.io/component-base) and what Prometheus' clients show of
 * a process: process_cpu_seconds_total, process_resident_memory_bytes, process_virtual_memory_bytes,
 * process_start_time_seconds, process_open_fds and process_max_fds have the same names and help here as in Go. Those of Go's
 * runtime (go_*) are not there: nothing here is a goroutine.
 *
 * @returns has kubernetes_build_info show another release of Kubernetes: `v1.34.2`
 */
export function registerComponentMetrics(options: ComponentMetricsOptions): (kubernetesVersion: string) => void {
  const { registry, build, features } = options;
  const registers = [registry];
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: AT_REST_MS });
  for (const name of EVENT_LOOP_METRICS) registry.removeSingleMetric(name);
  const labels = buildLabels(build);
  const buildInfo = new Gauge({
    name: 'kubernetes_build_info',
    help: "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    labelNames: Object.keys(labels),
    registers,
  });
  buildInfo.set(labels, 1);

  const featureEnabled = new Gauge({
    name: 'kubernetes_feature_enabled',
    help: '[BETA] This metric records the data about the stage and enablement of a k8s feature.',
    labelNames: ['name', 'stage'],
    registers,
  });
  for (const [name, { stage, enabled }] of features) featureEnabled.set({ name, stage }, enabled ? 1 : 0);

  new Counter({
    name: 'registered_metrics_total',
    help: '[BETA] The count of registered metrics broken by stability level and deprecation version.',
    labelNames: ['stability_level', 'deprecated_version'],
    registers,
    collect() {
      this.reset();
      for (const metric of registry.getMetricsAsArray()) {
        const level = stabilityOf(metric);
        if (level !== undefined) this.inc({ stability_level: level, deprecated_version: '' });
      }
    },
  });
  // Nothing can be hidden or switched off here, so these stay at zero; alerts on them go on working.
  new Counter({ name: 'hidden_metrics_total', help: '[BETA] The count of hidden metrics.', registers });
  new Counter({ name: 'disabled_metrics_total', help: '[BETA] The count of disabled metrics.', registers });
  return (kubernetesVersion) => {
    buildInfo.reset();
    buildInfo.set(buildLabels({ ...build, kubernetesVersion }), 1);
  };
}

/**
 * The labels of kubernetes_build_info. The version begins with the Kubernetes release, because alerts on mixed versions
 * in a cluster compare its first two numbers over all components; what follows a plus sign is build metadata.
 */
function buildLabels({ version, kubernetesVersion, commit, date, tree }: BuildFacts): Record<string, string> {
  const [, major = '', minor = ''] = /^v(\d+)\.(\d+)/.exec(kubernetesVersion) ?? [];
  return {
    major,
    minor,
    git_version: `${kubernetesVersion}${kubernetesVersion.includes('+') ? '.' : '+'}nodeplane.${version}`,
    git_commit: commit,
    git_tree_state: tree,
    build_date: date,
    go_version: `node ${process.version}`,
    compiler: 'v8',
    platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
  };
}

/** The stability level in front of the help of a Kubernetes metric; undefined for others, which do not count. */
function stabilityOf({ help }: MetricObject): string | undefined {
  return /^\[(ALPHA|BETA|STABLE|INTERNAL)\] /.exec(help)?.[1];
}

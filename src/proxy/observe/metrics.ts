import { Counter, Gauge, Histogram, type LabelValues, type Registry } from 'prom-client';
import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import { RESTRICTIONS } from '../plan/index.ts';
import type { ProxyEvent, ProxyMode } from '../sync/index.ts';
import { METRICS, type MetricDefinition, type MetricName, type NameOf } from './metric-definitions.ts';

type SyncFinished = Extract<ProxyEvent, { kind: 'syncFinished' }>;
type SyncFailed = Extract<ProxyEvent, { kind: 'syncFailed' }>;
type Metric = Counter | Gauge | Histogram;

/**
 * Counts what the proxy does, in kube-proxy's metrics. `observe` is a ProxyObserver; one instance serves all families.
 * A metric of another mode is not registered, and one with labels has no series until something happened.
 */
export class ProxyMetrics {
  readonly #metrics = new Map<MetricName, Metric>();
  /** Differences found and not yet repaired. */
  readonly #drifts = new Map<IpFamily, number>();
  readonly #pending = new Map<IpFamily, { readonly services: number; readonly slices: number }>();

  constructor(registry: Registry, mode: ProxyMode) {
    for (const [name, definition] of Object.entries(METRICS) as [MetricName, MetricDefinition][]) {
      if (definition.modes && !definition.modes.includes(mode)) continue;
      this.#metrics.set(name, makeMetric(name, definition, registry));
    }
  }

  readonly observe = (event: ProxyEvent): void => {
    const family = { ip_family: event.family };
    switch (event.kind) {
      case 'started':
      case 'queued':
        this.#set('sync_proxy_rules_last_queued_timestamp_seconds', event.at / 1000, family);
        break;
      case 'changed':
        this.#count(
          event.object === 'slice'
            ? 'sync_proxy_rules_endpoint_changes_total'
            : 'sync_proxy_rules_service_changes_total',
        );
        this.#setPending(event.family, event.pending);
        break;
      case 'syncStarted':
        this.#setPending(event.family, { services: 0, slices: 0 });
        break;
      case 'syncFinished':
        this.#observeDurations(event);
        this.#observeSuccess(event);
        if (event.full) this.#observeRepair(event.family);
        break;
      case 'driftFound':
        this.#drifts.set(event.family, event.drifts.length);
        this.#count('drift_found_total', family, event.drifts.length);
        break;
      case 'leftOut':
        this.#set('service_ports_left_out', event.ports.length, family);
        break;
      case 'syncFailed':
        this.#observeDurations(event);
        this.#count('sync_failures_total', { ...family, stage: event.stage });
        if (event.stage === 'commit') this.#observeCommitFailure(event);
        break;
    }
  };

  /** Counts an answer of the health server. */
  countHealthAnswer(path: 'healthz' | 'livez', status: number): void {
    this.#count(`proxy_${path}_total`, { code: String(status) });
  }

  #observeDurations({ family, full, seconds }: SyncFinished | SyncFailed): void {
    const labels = { ip_family: family };
    this.#time('sync_proxy_rules_duration_seconds', seconds, labels);
    this.#time(
      full ? 'sync_full_proxy_rules_duration_seconds' : 'sync_partial_proxy_rules_duration_seconds',
      seconds,
      labels,
    );
  }

  #observeSuccess({ family, mode, at, commit, triggerTimes, ...event }: SyncFinished): void {
    const labels = { ip_family: family };
    for (const time of triggerTimes) {
      this.#time('network_programming_duration_seconds', Math.max(0, at - time) / 1000, labels);
    }
    for (const policy of ['internal', 'external'] as const) {
      const policyLabels = { ...labels, traffic_policy: policy };
      this.#set('sync_proxy_rules_no_local_endpoints_total', event.noLocalEndpoints[policy], policyLabels);
    }
    for (const reason of RESTRICTIONS) {
      this.#set('services_restricted', event.restrictedServices[reason], { ...labels, reason });
    }
    this.#set('sync_proxy_rules_last_timestamp_seconds', at / 1000, labels);
    if (mode !== 'iptables') return;
    for (const [table, { total, written }] of Object.entries(commit?.objects ?? {})) {
      this.#set('sync_proxy_rules_iptables_total', total, { ...labels, table });
      this.#set('sync_proxy_rules_iptables_last', written, { ...labels, table });
    }
  }

  #observeRepair(family: IpFamily): void {
    const repaired = this.#drifts.get(family);
    this.#drifts.delete(family);
    if (repaired) this.#count('drift_repaired_total', { ip_family: family }, repaired);
  }

  #observeCommitFailure({ family, mode, full, error }: SyncFailed): void {
    const labels = { ip_family: family };
    if (mode === 'nftables') {
      this.#count('sync_proxy_rules_nftables_sync_failures_total', labels);
      return;
    }
    // In mode ipvs most of a commit is netlink, for which kube-proxy has no metric.
    if (!(error instanceof NodeplaneError && error.code === 'ERR_IPTABLES')) return;
    this.#count('sync_proxy_rules_iptables_restore_failures_total', labels);
    if (!full) this.#count('sync_proxy_rules_iptables_partial_restore_failures_total', labels);
  }

  /** A slice is of one family, so slices add up; a Service waits in every family and counts once. */
  #setPending(family: IpFamily, pending: { readonly services: number; readonly slices: number }): void {
    this.#pending.set(family, pending);
    const all = [...this.#pending.values()];
    const slices = all.reduce((sum, one) => sum + one.slices, 0);
    this.#set('sync_proxy_rules_endpoint_changes_pending', slices);
    this.#set('sync_proxy_rules_service_changes_pending', Math.max(...all.map((one) => one.services)));
  }

  #count(name: NameOf<'counter'>, labels: LabelValues<string> = {}, by = 1): void {
    (this.#metrics.get(name) as Counter | undefined)?.inc(labels, by);
  }

  #set(name: NameOf<'gauge'>, value: number, labels: LabelValues<string> = {}): void {
    (this.#metrics.get(name) as Gauge | undefined)?.set(labels, value);
  }

  #time(name: NameOf<'histogram'>, seconds: number, labels: LabelValues<string>): void {
    (this.#metrics.get(name) as Histogram | undefined)?.observe(labels, seconds);
  }
}

function makeMetric(
  name: MetricName,
  { prefix, type, help, labels, buckets = [] }: MetricDefinition,
  registry: Registry,
): Metric {
  const common = {
    name: `${prefix ?? 'kubeproxy'}_${name}`,
    // The stability level, as the component base of Kubernetes puts it in front.
    help: prefix ? help : `[ALPHA] ${help}`,
    labelNames: labels,
    registers: [registry],
  };
  switch (type) {
    case 'counter':
      return new Counter(common);
    case 'gauge':
      return new Gauge(common);
    case 'histogram':
      return new Histogram({ ...common, buckets: [...buckets] });
    default:
      return type satisfies never;
  }
}

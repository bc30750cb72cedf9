import { Counter, Gauge, Histogram, type LabelValues, type Registry } from 'prom-client';
import type { IpFamily } from '../../core/index.ts';
import { RESTRICTIONS } from '../plan/index.ts';
import type { ProxyEvent } from '../sync/index.ts';
import { METRICS, type MetricDefinition, type NameOf } from './metric-definitions.ts';
import type { MetricWriter, ModeMetrics } from './mode-metrics.ts';

type SyncFinished = Extract<ProxyEvent, { kind: 'syncFinished' }>;
type SyncFailed = Extract<ProxyEvent, { kind: 'syncFailed' }>;
type Metric = Counter | Gauge | Histogram;

/**
 * Counts what the proxy does, in kube-proxy's metrics. `observe` is a ProxyObserver; one instance serves all families.
 * As there, one with labels has no series until something happened; our own counters and gauges begin at 0, as the first step
 * from nothing to 1 is no increase to Prometheus.
 */
export class ProxyMetrics {
  readonly #metrics = new Map<string, Metric>();
  readonly #mode: ModeMetrics;
  readonly #writer: MetricWriter = {
    count: (name, labels) => (this.#metrics.get(name) as Counter).inc(labels),
    set: (name, value, labels) => (this.#metrics.get(name) as Gauge).set(labels, value),
    time: (name, seconds, labels) => (this.#metrics.get(name) as Histogram).observe(labels, seconds),
  };
  /** Differences found and not yet repaired. */
  readonly #drifts = new Map<IpFamily, number>();
  readonly #pending = new Map<IpFamily, { readonly services: number; readonly slices: number }>();

  /** @param mode those the mode in use has besides */
  constructor(registry: Registry, mode: ModeMetrics) {
    this.#mode = mode;
    const definitions: Readonly<Record<string, MetricDefinition>> = { ...METRICS, ...mode.definitions };
    for (const [name, definition] of Object.entries(definitions)) {
      this.#metrics.set(name, makeMetric(name, definition, registry));
    }
  }

  readonly observe = (event: ProxyEvent): void => {
    this.#mode.observe(event, this.#writer);
    const family = { ip_family: event.family };
    switch (event.kind) {
      case 'started':
      case 'queued':
        if (event.kind === 'started') this.#beginAtZero(event.family);
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
        this.#observeDuration(event);
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
        this.#observeDuration(event);
        this.#count('sync_failures_total', { ...family, stage: event.stage });
        break;
    }
  };

  /** Counts an answer of the health server. */
  countHealthAnswer(path: 'healthz' | 'livez', status: number): void {
    this.#count(`proxy_${path}_total`, { code: String(status) });
  }

  #beginAtZero(ip_family: IpFamily): void {
    for (const name of ['drift_found_total', 'drift_repaired_total'] as const) this.#count(name, { ip_family }, 0);
    for (const stage of ['plan', 'commit']) this.#count('sync_failures_total', { ip_family, stage }, 0);
    this.#set('service_ports_left_out', 0, { ip_family });
  }

  #observeDuration({ family, seconds }: SyncFinished | SyncFailed): void {
    this.#time('sync_proxy_rules_duration_seconds', seconds, { ip_family: family });
  }

  #observeSuccess({ family, at, triggerTimes, ...event }: SyncFinished): void {
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
  }

  #observeRepair(family: IpFamily): void {
    const repaired = this.#drifts.get(family);
    this.#drifts.delete(family);
    if (repaired) this.#count('drift_repaired_total', { ip_family: family }, repaired);
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
    (this.#metrics.get(name) as Counter).inc(labels, by);
  }

  #set(name: NameOf<'gauge'>, value: number, labels: LabelValues<string> = {}): void {
    (this.#metrics.get(name) as Gauge).set(labels, value);
  }

  #time(name: NameOf<'histogram'>, seconds: number, labels: LabelValues<string>): void {
    (this.#metrics.get(name) as Histogram).observe(labels, seconds);
  }
}

function makeMetric(
  name: string,
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

import type { ProxyEvent } from '../sync/index.ts';
import { type MetricDefinition, SYNC_BUCKETS } from './metric-definitions.ts';

/** Feeds metrics by their name in the definitions. */
export interface MetricWriter {
  readonly count: (name: string, labels: Labels) => void;
  readonly set: (name: string, value: number, labels: Labels) => void;
  readonly time: (name: string, seconds: number, labels: Labels) => void;
}

type Labels = Readonly<Record<string, string>>;

/** The sync metrics that one mode has and not all do. */
export interface ModeMetrics {
  /** By name without the prefix `kubeproxy_`. */
  readonly definitions: Readonly<Record<string, MetricDefinition>>;
  /** Called with each event. */
  readonly observe: (event: ProxyEvent, writer: MetricWriter) => void;
}

/** Durations of full and of partial syncs, which kube-proxy tells apart in modes iptables and nftables. */
export const FULL_AND_PARTIAL_METRICS: ModeMetrics = {
  definitions: {
    sync_full_proxy_rules_duration_seconds: {
      type: 'histogram',
      help: 'SyncProxyRules latency in seconds for full resyncs',
      labels: ['ip_family'],
      buckets: SYNC_BUCKETS,
    },
    sync_partial_proxy_rules_duration_seconds: {
      type: 'histogram',
      help: 'SyncProxyRules latency in seconds for partial resyncs',
      labels: ['ip_family'],
      buckets: SYNC_BUCKETS,
    },
  },
  observe(event, { time }) {
    if (event.kind !== 'syncFinished' && event.kind !== 'syncFailed') return;
    const name = event.full ? 'sync_full_proxy_rules_duration_seconds' : 'sync_partial_proxy_rules_duration_seconds';
    time(name, event.seconds, { ip_family: event.family });
  },
};

/** All of these. */
export function combineMetrics(...parts: readonly ModeMetrics[]): ModeMetrics {
  return {
    definitions: Object.assign({}, ...parts.map(({ definitions }) => definitions)),
    observe(event, writer) {
      for (const { observe } of parts) observe(event, writer);
    },
  };
}

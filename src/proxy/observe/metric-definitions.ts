/** One metric, as data. */
export interface MetricDefinition {
  /** @default kubeproxy */
  readonly prefix?: 'nodeplane';
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

/** kube-proxy's, of syncs: 1 ms doubling to 16.384 s. */
export const SYNC_BUCKETS = Array.from({ length: 15 }, (_, i) => 2 ** i / 1000);

/** Half a second at most is the aim; five minutes is hopeless. */
const NETWORK_PROGRAMMING_BUCKETS = [
  0.25,
  0.5,
  ...Array.from({ length: 59 }, (_, i) => i + 1),
  ...Array.from({ length: 12 }, (_, i) => 60 + 5 * i),
  ...Array.from({ length: 7 }, (_, i) => 120 + 30 * i),
];

/**
 * kube-proxy's sync metrics of all modes by name without the prefix `kubeproxy_` (of one mode: `ModeMetrics`): names,
 * types, labels, buckets and help are those of Kubernetes 1.36, so that existing dashboards and alerts go on working.
 * What kube-proxy has no metric for follows under our own prefix.
 */
export const METRICS = {
  sync_proxy_rules_duration_seconds: {
    type: 'histogram',
    help: 'SyncProxyRules latency in seconds',
    labels: ['ip_family'],
    buckets: SYNC_BUCKETS,
  },
  sync_proxy_rules_last_timestamp_seconds: {
    type: 'gauge',
    help: 'The last time proxy rules were successfully synced',
    labels: ['ip_family'],
  },
  sync_proxy_rules_last_queued_timestamp_seconds: {
    type: 'gauge',
    help: 'The last time a sync of proxy rules was queued',
    labels: ['ip_family'],
  },
  network_programming_duration_seconds: {
    type: 'histogram',
    help: 'In Cluster Network Programming Latency in seconds',
    labels: ['ip_family'],
    buckets: NETWORK_PROGRAMMING_BUCKETS,
  },
  sync_proxy_rules_endpoint_changes_pending: {
    type: 'gauge',
    help: 'Pending proxy rules Endpoint changes',
    labels: [],
  },
  sync_proxy_rules_endpoint_changes_total: {
    type: 'counter',
    help: 'Cumulative proxy rules Endpoint changes',
    labels: [],
  },
  sync_proxy_rules_service_changes_pending: {
    type: 'gauge',
    help: 'Pending proxy rules Service changes',
    labels: [],
  },
  sync_proxy_rules_service_changes_total: {
    type: 'counter',
    help: 'Cumulative proxy rules Service changes',
    labels: [],
  },
  sync_proxy_rules_no_local_endpoints_total: {
    type: 'gauge',
    help: 'Number of services with a Local traffic policy and no endpoints',
    labels: ['traffic_policy', 'ip_family'],
  },
  proxy_healthz_total: {
    type: 'counter',
    help: 'Cumulative proxy healthz HTTP status',
    labels: ['code'],
  },
  proxy_livez_total: {
    type: 'counter',
    help: 'Cumulative proxy livez HTTP status',
    labels: ['code'],
  },
  sync_failures_total: {
    prefix: 'nodeplane',
    type: 'counter',
    help: 'Syncs that failed; stage says whether the plan could not be made or the kernel not be brought in line with it',
    labels: ['ip_family', 'stage'],
  },
  drift_found_total: {
    prefix: 'nodeplane',
    type: 'counter',
    help: 'Differences found between the kernel and what was committed to it',
    labels: ['ip_family'],
  },
  drift_repaired_total: {
    prefix: 'nodeplane',
    type: 'counter',
    help: 'Differences found that the full sync after it repaired',
    labels: ['ip_family'],
  },
  service_ports_left_out: {
    prefix: 'nodeplane',
    type: 'gauge',
    help: 'Service ports that are not programmed because the kernel refuses them',
    labels: ['ip_family'],
  },
  services_restricted: {
    prefix: 'nodeplane',
    type: 'gauge',
    help: 'Services of which a part is not served: another Service has a destination (taken), an address may be no Service’s (refused), or there is too much of something (limit)',
    labels: ['ip_family', 'reason'],
  },
} as const satisfies Readonly<Record<string, MetricDefinition>>;

/** The name of a metric, as it is exposed. */
export type MetricName = keyof typeof METRICS;

/** The names of the metrics of one type. */
export type NameOf<Type extends MetricDefinition['type']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['type'] extends Type ? Name : never;
}[MetricName];

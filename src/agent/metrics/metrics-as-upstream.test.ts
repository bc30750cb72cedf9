import { pino } from 'pino';
import { Registry } from 'prom-client';
import { beforeAll, expect, it } from 'vitest';
import { SYNC_FINISHED } from '../../../test/samples/sync-finished.ts';
import { type ProxyEvent, ProxyMetrics } from '../../proxy/index.ts';
import { iptablesMode } from '../../proxy/iptables/index.ts';
import { flowMetrics } from '../services/conntrack/flow-metrics.ts';
import { registerComponentMetrics } from './component-metrics.ts';
import { nodeplaneMetrics } from './nodeplane-metrics.ts';
import { restClientObserver } from './rest-client-metrics.ts';

// Everything a running kube-proxy 1.36.2 in iptables mode shows on /metrics, apart from Go's own (go_*) and from metrics
// of the API server's libraries that stay at zero in it (apiserver_*, aggregator_*, cardinality_*).

const SYNC = '0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 +Inf';
const REST = '0.005 0.025 0.1 0.25 0.5 1 2 4 8 15 30 60 +Inf';

interface Shape {
  readonly type: string;
  readonly labels: string;
  readonly help: string;
  readonly buckets?: string;
}

const shape = (type: string, labels: string, help: string, buckets?: string): Shape => ({
  type,
  labels,
  help,
  ...(buckets !== undefined && { buckets }),
});

const CLAIMED: Readonly<Record<string, Shape>> = {
  disabled_metrics_total: shape('counter', '', '[BETA] The count of disabled metrics.'),
  hidden_metrics_total: shape('counter', '', '[BETA] The count of hidden metrics.'),
  kubeproxy_conntrack_reconciler_deleted_entries_total: shape(
    'counter',
    'ip_family',
    '[ALPHA] Cumulative conntrack flows deleted by conntrack reconciler',
  ),
  kubeproxy_conntrack_reconciler_sync_duration_seconds: shape(
    'histogram',
    'ip_family',
    '[ALPHA] ReconcileConntrackFlowsLatency latency in seconds',
    SYNC,
  ),
  kubeproxy_proxy_healthz_total: shape('counter', 'code', '[ALPHA] Cumulative proxy healthz HTTP status'),
  kubeproxy_sync_full_proxy_rules_duration_seconds: shape(
    'histogram',
    'ip_family',
    '[ALPHA] SyncProxyRules latency in seconds for full resyncs',
    SYNC,
  ),
  kubeproxy_sync_proxy_rules_duration_seconds: shape(
    'histogram',
    'ip_family',
    '[ALPHA] SyncProxyRules latency in seconds',
    SYNC,
  ),
  kubeproxy_sync_proxy_rules_endpoint_changes_pending: shape(
    'gauge',
    '',
    '[ALPHA] Pending proxy rules Endpoint changes',
  ),
  kubeproxy_sync_proxy_rules_endpoint_changes_total: shape(
    'counter',
    '',
    '[ALPHA] Cumulative proxy rules Endpoint changes',
  ),
  kubeproxy_sync_proxy_rules_iptables_last: shape(
    'gauge',
    'ip_family,table',
    '[ALPHA] Number of iptables rules written by kube-proxy in last sync',
  ),
  kubeproxy_sync_proxy_rules_iptables_total: shape(
    'gauge',
    'ip_family,table',
    '[ALPHA] Total number of iptables rules owned by kube-proxy',
  ),
  kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds: shape(
    'gauge',
    'ip_family',
    '[ALPHA] The last time a sync of proxy rules was queued',
  ),
  kubeproxy_sync_proxy_rules_last_timestamp_seconds: shape(
    'gauge',
    'ip_family',
    '[ALPHA] The last time proxy rules were successfully synced',
  ),
  kubeproxy_sync_proxy_rules_no_local_endpoints_total: shape(
    'gauge',
    'ip_family,traffic_policy',
    '[ALPHA] Number of services with a Local traffic policy and no endpoints',
  ),
  kubeproxy_sync_proxy_rules_service_changes_pending: shape('gauge', '', '[ALPHA] Pending proxy rules Service changes'),
  kubeproxy_sync_proxy_rules_service_changes_total: shape(
    'counter',
    '',
    '[ALPHA] Cumulative proxy rules Service changes',
  ),
  kubernetes_build_info: shape(
    'gauge',
    'build_date,compiler,git_commit,git_tree_state,git_version,go_version,major,minor,platform',
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
  ),
  kubernetes_feature_enabled: shape(
    'gauge',
    'name,stage',
    '[BETA] This metric records the data about the stage and enablement of a k8s feature.',
  ),
  process_cpu_seconds_total: shape('counter', '', 'Total user and system CPU time spent in seconds.'),
  process_max_fds: shape('gauge', '', 'Maximum number of open file descriptors.'),
  process_open_fds: shape('gauge', '', 'Number of open file descriptors.'),
  process_resident_memory_bytes: shape('gauge', '', 'Resident memory size in bytes.'),
  process_start_time_seconds: shape('gauge', '', 'Start time of the process since unix epoch in seconds.'),
  process_virtual_memory_bytes: shape('gauge', '', 'Virtual memory size in bytes.'),
  registered_metrics_total: shape(
    'counter',
    'deprecated_version,stability_level',
    '[BETA] The count of registered metrics broken by stability level and deprecation version.',
  ),
  rest_client_request_duration_seconds: shape(
    'histogram',
    'host,verb',
    '[ALPHA] Request latency in seconds. Broken down by verb, and host.',
    REST,
  ),
  rest_client_requests_total: shape(
    'counter',
    'code,host,method',
    '[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.',
  ),
};

/** kube-proxy has these too; ours does not. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  kubeproxy_iptables_ct_state_invalid_dropped_packets_total:
    'shown where the kernel has nfacct: src/agent/accounting.ts, test/lab/agent',
  kubeproxy_iptables_localhost_nodeports_accepted_packets_total:
    'shown where the kernel has nfacct: src/agent/accounting.ts, test/lab/agent',
  process_network_receive_bytes_total: 'counts the whole network namespace, which node_exporter has by interface',
  process_network_transmit_bytes_total: 'counts the whole network namespace, which node_exporter has by interface',
  process_virtual_memory_max_bytes: 'no limit is set on it',
  rest_client_exec_plugin_certificate_rotation_age:
    'credential plugins are run by the Kubernetes client library, which does not tell',
  rest_client_exec_plugin_ttl_seconds:
    'credential plugins are run by the Kubernetes client library, which does not tell',
  rest_client_rate_limiter_duration_seconds: 'requests are not held back: an agent makes few',
  rest_client_request_size_bytes: 'the few request bodies are events',
  rest_client_response_size_bytes: 'sizes are those of the objects',
  rest_client_transport_cache_entries: "concern the insides of Go's client library",
  rest_client_transport_cert_rotation_gc_calls_total: "concern the insides of Go's client library",
  rest_client_transport_create_calls_total: "concern the insides of Go's client library",
};

let text: string;
let shown: Readonly<Record<string, Shape>>;

beforeAll(async () => {
  const registry = new Registry();
  const sync = new ProxyMetrics(registry, iptablesMode.metrics);
  registerComponentMetrics({
    registry,
    build: {
      version: '0.3.0',
      kubernetesVersion: 'v1.36.2',
      commit: 'abc',
      date: '2026-11-20T00:00:00Z',
      tree: 'clean',
    },
    features: new Map([
      ['WatchList', { stage: 'BETA', enabled: true }],
      ['AllAlpha', { stage: 'ALPHA', enabled: false }],
    ]),
  });
  const observeRequest = restClientObserver(registry);
  const commits = nodeplaneMetrics({
    registry,
    version: '0.3.0',
    mode: 'iptables',
    watchAges: () => [['services', 2.5]],
  });
  for (const event of EVENTS) {
    sync.observe(event);
    commits(event);
  }
  sync.countHealthAnswer('healthz', 200);
  flowMetrics(registry, pino({ level: 'silent' }))({ family: 'IPv4', deleted: 3, seconds: 0.02 });
  observeRequest({ verb: 'POST', host: '10.0.0.1:6443', code: 201, seconds: 0.2 });
  observeRequest({ verb: 'GET', host: '10.0.0.1:6443', code: 200, seconds: undefined });
  observeRequest({ verb: 'GET', host: '10.0.0.1:6443', code: '<error>', seconds: 61 });
  // Twice, because a scrape must not change what the next one finds.
  await registry.metrics();
  text = await registry.metrics();
  shown = shapesOf(text);
});

const EVENTS: readonly ProxyEvent[] = [
  { family: 'IPv4', at: 1_700_000_000_000, kind: 'started' },
  {
    family: 'IPv4',
    at: 1_700_000_000_000,
    ...SYNC_FINISHED,
    full: true,
    commit: { kernelSeconds: 0.25, objects: { nat: { total: 3, written: 2 } } },
    deltaSize: 1,
  },
  { family: 'IPv6', at: 1_700_000_000_000, ...SYNC_FINISHED },
];

/** What an exposition says of each metric: type, label names, help and buckets. */
function shapesOf(exposition: string): Record<string, Shape> {
  const shapes: Record<string, Shape> = {};
  for (const block of exposition.split('# HELP ').slice(1)) {
    const [, name, help, type, samples] = /^(\S+) (.*)\n# TYPE \S+ (\S+)\n([\s\S]*)$/.exec(block)!;
    const labels = new Set([...samples!.matchAll(/[{,](\w+)="/g)].map(([, label]) => label!));
    const buckets = new Set([...samples!.matchAll(/[{,]le="([^"]+)"/g)].map(([, bound]) => bound!));
    labels.delete('le');
    shapes[name!] = shape(
      type!,
      [...labels].sort().join(),
      help!,
      type === 'histogram' ? [...buckets].join(' ') : undefined,
    );
  }
  return shapes;
}

it.each(Object.entries(CLAIMED))('%s looks as in kube-proxy', (name, expected) => {
  expect(shown[name]).toEqual(expected);
});

it('claims nothing it leaves out, and shows nothing under kube-proxy’s names that is in neither list', () => {
  expect(Object.keys(LEFT_OUT).filter((name) => name in shown)).toEqual([]);
  // Those that kube-proxy only shows once something of the kind happened; src/proxy/observe/metrics.test.ts has them.
  const later = [
    'kubeproxy_network_programming_duration_seconds',
    'kubeproxy_proxy_livez_total',
    'kubeproxy_sync_partial_proxy_rules_duration_seconds',
    'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total',
    'kubeproxy_sync_proxy_rules_iptables_restore_failures_total',
  ];
  const ours = Object.keys(shown).filter((name) => /^(kubeproxy|kubernetes|rest_client)_/.test(name));
  expect(ours.filter((name) => !(name in CLAIMED)).sort()).toEqual(later);
});

const samples = (name: string) => text.split('\n').filter((line) => line.startsWith(name));

it('tells the build in labels that version checks understand', () => {
  const [line] = samples('kubernetes_build_info');
  expect(line).toContain('git_version="v1.36.2+nodeplane.0.3.0"');
  expect(line).toContain('major="1",minor="36"');
  expect(line).toContain('git_commit="abc"');
  expect(line).toContain('git_tree_state="clean"');
  expect(line).toContain('build_date="2026-11-20T00:00:00Z"');
  expect(line).toMatch(/platform="linux\/\w+".*\} 1$/);
});

it('tells the feature gates', () => {
  expect(samples('kubernetes_feature_enabled')).toEqual([
    'kubernetes_feature_enabled{name="WatchList",stage="BETA"} 1',
    'kubernetes_feature_enabled{name="AllAlpha",stage="ALPHA"} 0',
  ]);
});

it('counts the registered metrics by stability', () => {
  const levels = Object.values(shown).flatMap(({ help }) => /^\[(\w+)\]/.exec(help)?.[1] ?? []);
  for (const level of ['ALPHA', 'BETA']) {
    const count = levels.filter((one) => one === level).length;
    expect(count).toBeGreaterThan(3);
    expect(samples('registered_metrics_total')).toContain(
      `registered_metrics_total{stability_level="${level}",deprecated_version=""} ${count}`,
    );
  }
});

it('counts requests to the API server, and times those that are no watch', () => {
  expect(samples('rest_client_requests_total')).toEqual([
    'rest_client_requests_total{code="201",method="POST",host="10.0.0.1:6443"} 1',
    'rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 1',
    'rest_client_requests_total{code="<error>",method="GET",host="10.0.0.1:6443"} 1',
  ]);
  expect(samples('rest_client_request_duration_seconds_count')).toEqual([
    'rest_client_request_duration_seconds_count{verb="POST",host="10.0.0.1:6443"} 1',
    'rest_client_request_duration_seconds_count{verb="GET",host="10.0.0.1:6443"} 1',
  ]);
});

it('tells of itself under its own name', () => {
  expect(samples('nodeplane_build_info')).toEqual([
    `nodeplane_build_info{version="0.3.0",node_version="${process.version}",mode="iptables"} 1`,
  ]);
  expect(samples('nodeplane_watch_age_seconds')).toEqual(['nodeplane_watch_age_seconds{resource="services"} 2.5']);
  // A sync that had nothing to commit has no commit time.
  expect(samples('nodeplane_kernel_commit_seconds_sum')).toEqual([
    'nodeplane_kernel_commit_seconds_sum{ip_family="IPv4"} 0.25',
  ]);
});

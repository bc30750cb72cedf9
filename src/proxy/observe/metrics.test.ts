import { Registry } from 'prom-client';
import { beforeEach, describe, expect, it } from 'vitest';
import { type IpFamily, NodeplaneError } from '../../core/index.ts';
import type { ProxyMode } from '../index.ts';
import { iptablesMode } from '../iptables/index.ts';
import { ipvsMode } from '../ipvs/index.ts';
import { nftablesMode } from '../nftables/index.ts';
import type { ProxyEvent, ProxyEventBody } from '../sync/index.ts';
import { ProxyMetrics } from './metrics.ts';

const MODES = { iptables: iptablesMode, nftables: nftablesMode, ipvs: ipvsMode };
const NOW = 1_700_000_000_000;

let registry: Registry;
let metrics: ProxyMetrics;

function make(mode: ProxyMode): void {
  registry = new Registry();
  metrics = new ProxyMetrics(registry, MODES[mode].metrics);
}

beforeEach(() => make('iptables'));

function tell(body: ProxyEventBody, { family = 'IPv4' as IpFamily } = {}): void {
  metrics.observe({ family, at: NOW, ...body } as ProxyEvent);
}

/** The samples whose names begin with `kubeproxy_` + name, as written in the exposition. */
async function samples(name: string): Promise<string[]> {
  return (await registry.metrics()).split('\n').filter((line) => line.startsWith(`kubeproxy_${name}`));
}

const FINISHED = {
  kind: 'syncFinished',
  full: true,
  seconds: 0.003,
  commit: { kernelSeconds: 0, objects: { nat: { total: 106, written: 12 }, filter: { total: 9, written: 9 } } },
  deltaSize: 1,
  triggerTimes: [],
  noLocalEndpoints: { internal: 1, external: 2 },
  restrictedServices: { taken: 3, refused: 0, limit: 0 },
} as const satisfies ProxyEventBody;
const FAILED = {
  kind: 'syncFailed',
  full: false,
  seconds: 0.02,
  error: new NodeplaneError('ERR_IPTABLES', 'no'),
  stage: 'commit',
  retryInMs: 1_000,
} as const satisfies ProxyEventBody;

// From /metrics of kube-proxy 1.36.2; those it had not used yet from the list of metrics in Kubernetes' documentation.
const EVERYWHERE = `
# HELP kubeproxy_network_programming_duration_seconds [ALPHA] In Cluster Network Programming Latency in seconds
# TYPE kubeproxy_network_programming_duration_seconds histogram
# HELP kubeproxy_proxy_healthz_total [ALPHA] Cumulative proxy healthz HTTP status
# TYPE kubeproxy_proxy_healthz_total counter
# HELP kubeproxy_proxy_livez_total [ALPHA] Cumulative proxy livez HTTP status
# TYPE kubeproxy_proxy_livez_total counter
# HELP kubeproxy_sync_proxy_rules_duration_seconds [ALPHA] SyncProxyRules latency in seconds
# TYPE kubeproxy_sync_proxy_rules_duration_seconds histogram
# HELP kubeproxy_sync_proxy_rules_endpoint_changes_pending [ALPHA] Pending proxy rules Endpoint changes
# TYPE kubeproxy_sync_proxy_rules_endpoint_changes_pending gauge
# HELP kubeproxy_sync_proxy_rules_endpoint_changes_total [ALPHA] Cumulative proxy rules Endpoint changes
# TYPE kubeproxy_sync_proxy_rules_endpoint_changes_total counter
# HELP kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds [ALPHA] The last time a sync of proxy rules was queued
# TYPE kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds gauge
# HELP kubeproxy_sync_proxy_rules_last_timestamp_seconds [ALPHA] The last time proxy rules were successfully synced
# TYPE kubeproxy_sync_proxy_rules_last_timestamp_seconds gauge
# HELP kubeproxy_sync_proxy_rules_no_local_endpoints_total [ALPHA] Number of services with a Local traffic policy and no endpoints
# TYPE kubeproxy_sync_proxy_rules_no_local_endpoints_total gauge
# HELP kubeproxy_sync_proxy_rules_service_changes_pending [ALPHA] Pending proxy rules Service changes
# TYPE kubeproxy_sync_proxy_rules_service_changes_pending gauge
# HELP kubeproxy_sync_proxy_rules_service_changes_total [ALPHA] Cumulative proxy rules Service changes
# TYPE kubeproxy_sync_proxy_rules_service_changes_total counter
`;
const OURS = `
# HELP nodeplane_sync_failures_total Syncs that failed; stage says whether the plan could not be made or the kernel not be brought in line with it
# TYPE nodeplane_sync_failures_total counter
# HELP nodeplane_drift_found_total Differences found between the kernel and what was committed to it
# TYPE nodeplane_drift_found_total counter
# HELP nodeplane_drift_repaired_total Differences found that the full sync after it repaired
# TYPE nodeplane_drift_repaired_total counter
# HELP nodeplane_service_ports_left_out Service ports that are not programmed because the kernel refuses them
# TYPE nodeplane_service_ports_left_out gauge
# HELP nodeplane_services_restricted Services of which a part is not served: another Service has a destination (taken), an address may be no Service’s (refused), or there is too much of something (limit)
# TYPE nodeplane_services_restricted gauge
`;
const FULL_AND_PARTIAL = `
# HELP kubeproxy_sync_full_proxy_rules_duration_seconds [ALPHA] SyncProxyRules latency in seconds for full resyncs
# TYPE kubeproxy_sync_full_proxy_rules_duration_seconds histogram
# HELP kubeproxy_sync_partial_proxy_rules_duration_seconds [ALPHA] SyncProxyRules latency in seconds for partial resyncs
# TYPE kubeproxy_sync_partial_proxy_rules_duration_seconds histogram
`;
const RESTORE_FAILURES = `
# HELP kubeproxy_sync_proxy_rules_iptables_restore_failures_total [ALPHA] Cumulative proxy iptables restore failures
# TYPE kubeproxy_sync_proxy_rules_iptables_restore_failures_total counter
`;
const IPTABLES = `
# HELP kubeproxy_sync_proxy_rules_iptables_last [ALPHA] Number of iptables rules written by kube-proxy in last sync
# TYPE kubeproxy_sync_proxy_rules_iptables_last gauge
# HELP kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total [ALPHA] Cumulative proxy iptables partial restore failures
# TYPE kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total counter
# HELP kubeproxy_sync_proxy_rules_iptables_total [ALPHA] Total number of iptables rules owned by kube-proxy
# TYPE kubeproxy_sync_proxy_rules_iptables_total gauge
`;
const NFTABLES = `
# HELP kubeproxy_sync_proxy_rules_nftables_sync_failures_total [ALPHA] Cumulative proxy nftables sync failures
# TYPE kubeproxy_sync_proxy_rules_nftables_sync_failures_total counter
`;

it.each<[ProxyMode, string]>([
  ['iptables', EVERYWHERE + FULL_AND_PARTIAL + RESTORE_FAILURES + IPTABLES],
  ['nftables', EVERYWHERE + FULL_AND_PARTIAL + NFTABLES],
  ['ipvs', EVERYWHERE + RESTORE_FAILURES],
])('in mode %s there are exactly the metrics of kube-proxy and ours', async (mode, expected) => {
  make(mode);
  const sorted = (text: string) =>
    text
      .split('\n')
      .filter((line) => line.startsWith('#'))
      .sort();
  expect(sorted(await registry.metrics())).toEqual(sorted(expected + OURS));
});

it('has no series with labels before first use, and zeros for those without', async () => {
  expect(await samples('')).toEqual([
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 0',
    'kubeproxy_sync_proxy_rules_endpoint_changes_total 0',
    'kubeproxy_sync_proxy_rules_service_changes_pending 0',
    'kubeproxy_sync_proxy_rules_service_changes_total 0',
  ]);
});

describe('buckets', () => {
  const bounds = async (name: string) =>
    (await samples(`${name}_bucket`)).map((line) => /le="([^"]+)"/.exec(line)![1]!).join(' ');

  it('of a sync double from 1 ms to 16 s', async () => {
    tell(FINISHED);
    tell({ ...FINISHED, full: false });
    const expected = '0.001 0.002 0.004 0.008 0.016 0.032 0.064 0.128 0.256 0.512 1.024 2.048 4.096 8.192 16.384 +Inf';
    for (const kind of ['', 'full_', 'partial_'])
      expect(await bounds(`sync_${kind}proxy_rules_duration_seconds`)).toBe(expected);
  });

  it('of network programming go from a quarter of a second to five minutes', async () => {
    tell({ ...FINISHED, triggerTimes: [NOW] });
    const all = (await bounds('network_programming_duration_seconds')).split(' ');
    expect(all).toHaveLength(2 + 59 + 12 + 7 + 1);
    expect(all.slice(0, 5)).toEqual(['0.25', '0.5', '1', '2', '3']);
    expect(all.slice(60, 64)).toEqual(['59', '60', '65', '70']);
    expect(all.slice(72)).toEqual(['115', '120', '150', '180', '210', '240', '270', '300', '+Inf']);
  });
});

describe('a successful sync', () => {
  it('is timed by kind and family', async () => {
    tell(FINISHED);
    tell({ ...FINISHED, full: false, seconds: 0.5 });
    tell(FINISHED, { family: 'IPv6' });
    expect(await samples('sync_proxy_rules_duration_seconds_count')).toEqual([
      'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 2',
      'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv6"} 1',
    ]);
    expect(await samples('sync_full_proxy_rules_duration_seconds_sum')).toEqual([
      'kubeproxy_sync_full_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.003',
      'kubeproxy_sync_full_proxy_rules_duration_seconds_sum{ip_family="IPv6"} 0.003',
    ]);
    expect(await samples('sync_partial_proxy_rules_duration_seconds_sum')).toEqual([
      'kubeproxy_sync_partial_proxy_rules_duration_seconds_sum{ip_family="IPv4"} 0.5',
    ]);
  });

  it('sets the gauges', async () => {
    tell(FINISHED);
    expect(await samples('sync_proxy_rules_last_timestamp_seconds')).toEqual([
      'kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"} 1700000000',
    ]);
    expect(await samples('sync_proxy_rules_no_local_endpoints_total')).toEqual([
      'kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="internal"} 1',
      'kubeproxy_sync_proxy_rules_no_local_endpoints_total{ip_family="IPv4",traffic_policy="external"} 2',
    ]);
    expect(await samples('sync_proxy_rules_iptables_')).toEqual([
      'kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"} 106',
      'kubeproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="filter"} 9',
      'kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="nat"} 12',
      'kubeproxy_sync_proxy_rules_iptables_last{ip_family="IPv4",table="filter"} 9',
    ]);
  });

  it('counts how long each change had waited', async () => {
    tell({ ...FINISHED, triggerTimes: [NOW - 2_000, NOW - 500, NOW + 5] });
    expect(await samples('network_programming_duration_seconds_sum')).toEqual([
      'kubeproxy_network_programming_duration_seconds_sum{ip_family="IPv4"} 2.5',
    ]);
    expect(await samples('network_programming_duration_seconds_count')).toEqual([
      'kubeproxy_network_programming_duration_seconds_count{ip_family="IPv4"} 3',
    ]);
  });
});

describe('a failed sync', () => {
  const failures = async () => (await samples('sync_proxy_rules_')).filter((line) => line.includes('failures'));

  it('is timed and counted, apart when it was for changes only', async () => {
    tell(FAILED);
    tell({ ...FAILED, full: true });
    expect(await failures()).toEqual([
      'kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 2',
      'kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total{ip_family="IPv4"} 1',
    ]);
    expect(await samples('sync_proxy_rules_duration_seconds_count')).toEqual([
      'kubeproxy_sync_proxy_rules_duration_seconds_count{ip_family="IPv4"} 2',
    ]);
    expect(await samples('sync_proxy_rules_last_timestamp_seconds')).toEqual([]);
  });

  it('is not the failure of the kernel when there was no plan', async () => {
    tell({ ...FAILED, stage: 'plan' });
    expect(await failures()).toEqual([]);
  });

  it('in mode ipvs is the failure of iptables only where iptables failed', async () => {
    make('ipvs');
    tell({ ...FAILED, error: new NodeplaneError('ERR_NETLINK_ACK', 'no') });
    expect(await failures()).toEqual([]);
    tell(FAILED);
    expect(await failures()).toEqual([
      'kubeproxy_sync_proxy_rules_iptables_restore_failures_total{ip_family="IPv4"} 1',
    ]);
  });

  it('is counted in every mode', async () => {
    make('ipvs');
    tell({ ...FAILED, error: new Error('no') });
    tell({ ...FAILED, stage: 'plan' });
    expect((await registry.metrics()).match(/^nodeplane_sync_failures_total.*$/gm)).toEqual([
      'nodeplane_sync_failures_total{ip_family="IPv4",stage="commit"} 1',
      'nodeplane_sync_failures_total{ip_family="IPv4",stage="plan"} 1',
    ]);
  });

  it('is counted for nftables under its own name', async () => {
    make('nftables');
    tell(FAILED);
    expect(await failures()).toEqual(['kubeproxy_sync_proxy_rules_nftables_sync_failures_total{ip_family="IPv4"} 1']);
  });
});

it('shows what waits, over both families, until a sync takes it up', async () => {
  const pending = async () => (await samples('sync_proxy_rules_')).filter((line) => line.includes('_pending'));
  tell({ kind: 'changed', object: 'service', pending: { services: 1, slices: 0 } });
  tell({ kind: 'changed', object: 'slice', pending: { services: 1, slices: 1 } });
  tell({ kind: 'changed', object: 'service', pending: { services: 1, slices: 0 } }, { family: 'IPv6' });
  tell({ kind: 'changed', object: 'slice', pending: { services: 1, slices: 1 } }, { family: 'IPv6' });
  expect(await pending()).toEqual([
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 2',
    'kubeproxy_sync_proxy_rules_service_changes_pending 1',
  ]);
  tell({ kind: 'syncStarted', full: false });
  expect(await pending()).toEqual([
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 1',
    'kubeproxy_sync_proxy_rules_service_changes_pending 1',
  ]);
  tell({ kind: 'syncStarted', full: false }, { family: 'IPv6' });
  expect(await pending()).toEqual([
    'kubeproxy_sync_proxy_rules_endpoint_changes_pending 0',
    'kubeproxy_sync_proxy_rules_service_changes_pending 0',
  ]);
  expect(await samples('sync_proxy_rules_endpoint_changes_total')).toEqual([
    'kubeproxy_sync_proxy_rules_endpoint_changes_total 2',
  ]);
  expect(await samples('sync_proxy_rules_service_changes_total')).toEqual([
    'kubeproxy_sync_proxy_rules_service_changes_total 2',
  ]);
});

it.each<ProxyEventBody>([{ kind: 'started' }, { kind: 'queued', reason: 'change' }])(
  'notes the time of %j',
  async (body) => {
    tell(body);
    expect(await samples('sync_proxy_rules_last_queued_timestamp_seconds')).toEqual([
      'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{ip_family="IPv4"} 1700000000',
    ]);
  },
);

it('counts the answers of the health server by status', async () => {
  metrics.countHealthAnswer('healthz', 200);
  metrics.countHealthAnswer('healthz', 503);
  metrics.countHealthAnswer('healthz', 503);
  metrics.countHealthAnswer('livez', 200);
  expect(await samples('proxy_')).toEqual([
    'kubeproxy_proxy_healthz_total{code="200"} 1',
    'kubeproxy_proxy_healthz_total{code="503"} 2',
    'kubeproxy_proxy_livez_total{code="200"} 1',
  ]);
});

it('counts drift when it is found, and as repaired once a full sync of that family succeeded', async () => {
  const missing = { object: 'nat chain KUBE-SERVICES', difference: 'missing' } as const;
  const ours = async () => (await registry.metrics()).split('\n').filter((line) => line.startsWith('nodeplane_drift'));
  tell({ kind: 'driftFound', drifts: [missing, missing] });
  expect(await ours()).toEqual(['nodeplane_drift_found_total{ip_family="IPv4"} 2']);
  tell({ ...FAILED, full: true });
  tell({ ...FINISHED, full: false });
  tell(FINISHED, { family: 'IPv6' });
  expect(await ours()).toHaveLength(1);
  tell(FINISHED);
  tell(FINISHED);
  expect(await ours()).toEqual([
    'nodeplane_drift_found_total{ip_family="IPv4"} 2',
    'nodeplane_drift_repaired_total{ip_family="IPv4"} 2',
  ]);
});

it('shows how many Service ports are left out', async () => {
  const shown = async () => (await registry.metrics()).match(/^nodeplane_service_ports_left_out.*$/gm);
  tell({ kind: 'leftOut', ports: [{ key: 'a/x:/TCP', name: 'a/x', reason: 'Bad' }] });
  expect(await shown()).toEqual(['nodeplane_service_ports_left_out{ip_family="IPv4"} 1']);
  tell({ kind: 'leftOut', ports: [] });
  expect(await shown()).toEqual(['nodeplane_service_ports_left_out{ip_family="IPv4"} 0']);
});

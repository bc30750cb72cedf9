import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { removeAll } from '../lab.ts';
import { PATIENCE } from '../patience.ts';
import { RATE_INTERVAL } from './live-prometheus.ts';
import { startWorkingNode, type WorkingNode } from './working-node.ts';

// What dashboards ask, asked of Debian's Prometheus about an agent that works: no panel may stay empty.

interface Panel {
  readonly title: string;
  readonly type: string;
  readonly targets?: readonly { readonly expr: string }[];
}

const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(
  readFileSync(new URL('../../../deploy/monitoring/dashboard.json', import.meta.url), 'utf8'),
);

/** What the panels of kubernetes-mixin's dashboard "Kubernetes / Proxy" ask, by title; S stands for its selector. */
const MIXIN: readonly (readonly [panel: string, ...queries: string[]])[] = [
  ['Up', 'sum(up{cluster="$cluster", job="kube-proxy"})'],
  ['Rules Sync Rate', 'sum(rate(kubeproxy_sync_proxy_rules_duration_seconds_count{S}[$__rate_interval]))'],
  [
    'Rules Sync Latency 99th Quantile',
    'histogram_quantile(0.99,rate(kubeproxy_sync_proxy_rules_duration_seconds_bucket{S}[$__rate_interval]))',
  ],
  ['Network Programming Rate', 'sum(rate(kubeproxy_network_programming_duration_seconds_count{S}[$__rate_interval]))'],
  [
    'Network Programming Latency 99th Quantile',
    'histogram_quantile(0.99, sum(rate(kubeproxy_network_programming_duration_seconds_bucket{S}[$__rate_interval])) by (instance, le))',
  ],
  [
    'Kube API Request Rate',
    ...['2..', '3..', '4..', '5..'].map(
      (code) => `sum(rate(rest_client_requests_total{S, code=~"${code}"}[$__rate_interval]))`,
    ),
  ],
  [
    'Post and Get Request Latency 99th Quantile',
    ...['POST', 'GET'].map(
      (verb) =>
        `histogram_quantile(0.99, sum(rate(rest_client_request_duration_seconds_bucket{S, verb="${verb}"}[$__rate_interval])) by (verb, le))`,
    ),
  ],
  ['Memory', 'process_resident_memory_bytes{S}'],
  ['CPU usage', 'rate(process_cpu_seconds_total{S}[$__rate_interval])'],
];
const MIXIN_SELECTOR = 'cluster="$cluster", job="kube-proxy", instance=~"$instance"';

/** Counts by what failed: no series before anything did. */
const ONLY_AFTER_FAILURES = 'nodeplane_background_failures_total';

/** As little as there may be; NaN and infinity are none. */
const A_NUMBER = expect.closeTo(0, -12);

/** The query with Grafana's variables filled in. */
function filled(query: string): string {
  return query
    .replaceAll('{S', `{${MIXIN_SELECTOR}`)
    .replaceAll('$__rate_interval', RATE_INTERVAL)
    .replaceAll('$cluster', 'lab')
    .replaceAll('$job', 'kube-proxy')
    .replaceAll('$instance', '.+');
}

let node: WorkingNode;

beforeAll(async () => {
  node = await startWorkingNode('v1.34.2');
  // Rates are made of what changes between scrapes.
  for (let round = 1; round <= 4; round++) {
    await node.work();
    await vi.waitFor(async () => expect(await changesSeen()).toBeGreaterThan(round), { timeout: 60_000 * PATIENCE });
  }
}, 300_000 * PATIENCE);
afterAll(async () => {
  await node.stop();
  removeAll();
});

const changesSeen = async () =>
  (await node.prometheus.query('max_over_time(kubeproxy_sync_proxy_rules_service_changes_total[1h])'))[0]?.value;
const answersOf = async (query: string) =>
  (await node.prometheus.query(filled(query)).catch(() => [])).map(({ value }) => value);

describe('the dashboard of kubernetes-mixin', () => {
  const queries = MIXIN.flatMap(([panel, ...all]) => all.map((query) => [panel, query] as const));
  it.each(queries)('%s: %s', async (_, query) => {
    await expect.poll(() => answersOf(query)).toContainEqual(A_NUMBER);
  });

  it('Goroutines: stays empty, as there are none', async () => {
    expect(await answersOf(`go_goroutines{S}`)).toEqual([]);
    // What it asks is well understood.
    expect(await answersOf('up{S}')).toEqual([1]);
  });
});

describe('deploy/monitoring/dashboard.json', () => {
  const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [title, expr] as const),
  );

  it('asks', () => expect(queries.length).toBeGreaterThan(40));

  it.each(queries)('%s: %s', async (_, query) => {
    if (query.includes(ONLY_AFTER_FAILURES)) {
      expect(await answersOf(query)).toEqual([]);
      expect(await node.agent.metrics()).toContain(`# TYPE ${ONLY_AFTER_FAILURES} counter`);
      return;
    }
    await expect.poll(() => answersOf(query)).toContainEqual(A_NUMBER);
  });

  it('chooses among the nodes there are', async () => {
    const samples = await node.prometheus.query('nodeplane_build_info');
    expect(samples).toMatchObject([{ labels: { cluster: 'lab', job: 'kube-proxy', instance: 'node-1' } }]);
  });
});

describe('alerts that are deployed', () => {
  /** kubernetes-mixin's KubeVersionMismatch, without its time. */
  const mismatch =
    'count by (cluster) (count by (git_version, cluster) (label_replace(kubernetes_build_info{job!~"kube-dns|coredns"}, "git_version", "$1", "git_version", "(v[0-9]*.[0-9]*).*"))) > 1';
  /** The same of OpenShift's NodeProxyApplyStale. */
  const stale =
    'kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds{S} - kubeproxy_sync_proxy_rules_last_timestamp_seconds{S} > 30';
  const components =
    'count by (git_version) (label_replace(kubernetes_build_info, "git_version", "$1", "git_version", "(v[0-9]*.[0-9]*).*"))';

  it.each(['v1.34.2', 'v1.38.0+k3s1'])(
    'KubeVersionMismatch does not fire with an API server of %s',
    async (version) => {
      node.api.gitVersion = version;
      // As when it is upgraded.
      await node.api.stop();
      await node.api.start();
      const minor = version.slice(0, 'v1.34'.length);
      const seen = async () =>
        (await node.prometheus.query(components)).map(({ labels, value }) => [labels.git_version, value]);
      await expect.poll(seen, { timeout: 60_000 * PATIENCE }).toEqual([[minor, 2]]);
      expect(await node.prometheus.query(mismatch)).toEqual([]);
    },
  );

  it('KubeVersionMismatch is asked rightly: two components of different releases are told', async () => {
    const one = 'label_replace(vector(1), "git_version", "v1.36.2", "", "")';
    expect(mismatch).toContain('kubernetes_build_info{job!~"kube-dns|coredns"}');
    const both = mismatch.replace(
      'kubernetes_build_info{job!~"kube-dns|coredns"}',
      `(kubernetes_build_info or ${one})`,
    );
    expect(
      await answersOf(both.replaceAll('by (cluster)', 'by ()').replace('git_version, cluster', 'git_version')),
    ).toEqual([2]);
  });

  it('NodeProxyApplyStale is silent after work, and what it compares is there', async () => {
    expect(await answersOf(stale)).toEqual([]);
    expect(await answersOf(stale.replace(' > 30', ''))).not.toEqual([]);
  });
});

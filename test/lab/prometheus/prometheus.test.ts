import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { type Agent, createLab, removeAll } from '../lab.ts';
import { type LivePrometheus, startPrometheus } from './live-prometheus.ts';

// Debian's Prometheus scrapes a running agent and answers the questions dashboards ask.

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
let agent: Agent;
let prometheus: LivePrometheus;

/** The value of an instant query; undefined while there is none. */
const query = async (expression: string) => (await prometheus.query(expression))[0]?.value;

beforeAll(async () => {
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  saveManifest(manifests, 'web.yaml', manifestOf(makeService('default/web', { clusterIP: '10.96.0.10' })));
  agent = await node.startAgent({ manifests });
  prometheus = startPrometheus(node, lab.folder, [{ job: 'kube-proxy', target: '127.0.0.1:10249' }]);
});
afterAll(async () => {
  prometheus.stop();
  await agent.stop();
  removeAll();
});

it('sees the agent', async () => {
  await expect.poll(() => query('up{job="kube-proxy"}').catch(() => undefined)).toBe(1);
});

it('answers when the last sync was, how long syncs take and what runs', async () => {
  expect(await query('kubeproxy_sync_proxy_rules_last_timestamp_seconds{ip_family="IPv4"}')).toBeGreaterThan(1e9);
  const p99 = await query(
    'histogram_quantile(0.99, kubeproxy_sync_proxy_rules_duration_seconds_bucket{ip_family="IPv4"})',
  );
  expect(p99).toBeGreaterThan(0);
  expect(await query('kubeproxy_sync_proxy_rules_iptables_total{table="filter", ip_family="IPv4"}')).toBeGreaterThan(0);
  expect(await query('process_resident_memory_bytes')).toBeGreaterThan(1e6);
  expect(await query('count(nodeplane_build_info)')).toBe(1);
});

it('has no complaint about the format', () => {
  expect(prometheus.output()).not.toMatch(/level=(warn|error).*(scrape|append|metric)/i);
});

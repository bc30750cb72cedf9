import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { makeService } from '../../fakes/service-objects.ts';
import { manifestOf, saveManifest } from '../../samples/manifests.ts';
import { type Agent, createLab, removeAll } from '../lab.ts';

// Debian's Prometheus scrapes a running agent and answers the questions dashboards ask.

const PROGRAM = fileURLToPath(new URL('../../../.cache/prometheus/usr/bin/prometheus', import.meta.url));
const URL_INSIDE = 'http://127.0.0.1:9090';

const lab = createLab();
const node = lab.addNode({ name: 'node-1' });
let agent: Agent;
let prometheus: ChildProcess;
const output: string[] = [];

/** The value of an instant query; undefined while there is none. */
async function query(expression: string): Promise<number | undefined> {
  const { body } = await node.httpGet(`${URL_INSIDE}/api/v1/query?query=${encodeURIComponent(expression)}`);
  const { data } = JSON.parse(body) as { data: { result: { value: [number, string] }[] } };
  const [first] = data.result;
  return first && Number(first.value[1]);
}

beforeAll(async () => {
  if (!existsSync(PROGRAM)) throw new Error(`Cannot find ${PROGRAM}: run scripts/setup`);
  const manifests = join(lab.folder, 'manifests');
  mkdirSync(manifests);
  saveManifest(manifests, 'web.yaml', manifestOf(makeService('default/web', { clusterIP: '10.96.0.10' })));
  agent = await node.startAgent({ manifests });
  const config = join(lab.folder, 'prometheus.yml');
  writeFileSync(
    config,
    `scrape_configs:
  - job_name: kube-proxy
    scrape_interval: 200ms
    scrape_timeout: 200ms
    static_configs: [{ targets: ['127.0.0.1:10249'] }]
`,
  );
  const flags = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(lab.folder, 'prometheus')}`,
    '--web.listen-address=127.0.0.1:9090',
  ];
  prometheus = spawn('ip', ['netns', 'exec', node.namespace.name, PROGRAM, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  for (const stream of [prometheus.stdout!, prometheus.stderr!])
    stream.on('data', (chunk) => output.push(String(chunk)));
});
afterAll(async () => {
  prometheus.kill('SIGKILL');
  await agent.stop();
  removeAll();
});

it('sees the agent', async () => {
  await expect.poll(() => query('up{job="kube-proxy"}').catch(() => undefined), { timeout: 20_000 }).toBe(1);
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
  expect(output.join('')).not.toMatch(/level=(warn|error).*(scrape|append|metric)/i);
});

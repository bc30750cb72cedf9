import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { samplePort } from '../../../../test/samples/sample-plan.ts';
import { kernelTraffic } from './kernel-traffic.ts';
import { registerTrafficMetrics } from './traffic-metrics.ts';

const port = samplePort({ name: 'shop/web:http', clusterIp: '10.96.0.10', port: 80 });
const labels = '{ip_family="IPv4",namespace="shop",service="web",port="80",protocol="TCP"}';

it('shows at each scrape what was counted by then, and stands still while that cannot be read', async () => {
  let n: number | undefined = 7;
  const traffic = () => {
    if (n === undefined) throw new Error('EPERM');
    const counts = { connections: n, packetsIn: n, packetsOut: n, bytesIn: n, bytesOut: n * 100 };
    return new Map([['IPv4', new Map([[port.key, counts]])]] as const);
  };
  const warnings: string[] = [];
  const registry = new Registry();
  const logger = { warn: (_: unknown, text?: string) => void warnings.push(text!) };
  registerTrafficMetrics({ registry, logger, source: kernelTraffic(traffic, () => [port]), lines: 1 });
  const scrape = async () =>
    (await registry.metrics())
      .split('\n')
      .filter((line) => line.includes(labels))
      .map((line) => line.replace(labels, ''));
  expect(await scrape()).toEqual([
    'nodeplane_service_connections_total 7',
    'nodeplane_service_packets_in_total 7',
    'nodeplane_service_packets_out_total 7',
    'nodeplane_service_bytes_in_total 7',
    'nodeplane_service_bytes_out_total 700',
  ]);
  n = 9;
  const ninth = await scrape();
  expect(ninth).toContain('nodeplane_service_connections_total 9');
  n = undefined;
  expect([await scrape(), await scrape()]).toEqual([ninth, ninth]);
  expect(warnings).toEqual(['The traffic of Services cannot be read: its metrics stand still']);
});

import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { registerTrafficMetrics, type TrafficReader } from './traffic-metrics.ts';

const counts = (n: bigint) => ({ connections: n, packetsIn: n, packetsOut: n, bytesIn: n, bytesOut: n * 100n });

function scrape(most: number, traffic: TrafficReader['traffic']): Promise<string> {
  const registry = new Registry();
  registerTrafficMetrics(registry, most, () => [{ family: 'IPv4', traffic }]);
  return registry.metrics();
}

it('shows at each scrape what the kernel has counted by then', async () => {
  const text = await scrape(1, () => new Map([['shop/web', counts(7n)]]));
  expect(text).toContain('nodeplane_service_connections_total{ip_family="IPv4",namespace="shop",service="web"} 7');
  expect(text).toContain('nodeplane_service_bytes_out_total{ip_family="IPv4",namespace="shop",service="web"} 700');
  expect(text).toContain('nodeplane_service_traffic_hidden 0');
});

it('shows no Service when there are more than allowed, and says how many that hides', async () => {
  const text = await scrape(1, () => new Map(['a/a', 'a/b'].map((name) => [name, counts(1n)])));
  expect(text).not.toContain('service="');
  expect(text).toContain('nodeplane_service_traffic_hidden 2');
});

import { expect, it } from 'vitest';
import { networkLatency } from './burst-meter.ts';

/** As containerd 1.6.20 writes it. */
function metrics(buckets: Readonly<Record<string, number>>, sum: number, count: number): string {
  const name = 'containerd_cri_network_plugin_operations_duration_seconds_seconds';
  return [
    `# TYPE ${name} histogram`,
    ...Object.entries(buckets).map(([le, n]) => `${name}_bucket{operation_type="set_up_pod",le="${le}"} ${n}`),
    `${name}_sum{operation_type="set_up_pod"} ${sum}`,
    `${name}_count{operation_type="set_up_pod"} ${count}`,
    `${name}_count{operation_type="tear_down_pod"} 7`,
    '',
  ].join('\n');
}

it('reads what operations took between two looks', () => {
  const before = metrics({ '0.1': 1, '0.5': 1, '1': 1, '+Inf': 1 }, 0.05, 1);
  const after = metrics({ '0.1': 1, '0.5': 51, '1': 101, '+Inf': 101 }, 40.05, 101);
  const { meanMs, p50Ms, p99Ms } = networkLatency(before, after, 'set_up_pod');
  expect([meanMs, p50Ms, p99Ms].map(Math.round)).toEqual([400, 500, 990]);
});

it('says what it knows of operations longer than the last bucket', () => {
  const after = metrics({ '0.1': 0, '1': 1, '+Inf': 10 }, 100, 10);
  expect(networkLatency('', after, 'set_up_pod')).toMatchObject({ p50Ms: 1000, p99Ms: 1000 });
});

it('does not take a metric that is not there for none', () => {
  expect(() => networkLatency('', '', 'set_up_pod')).toThrow(/no operation/);
});

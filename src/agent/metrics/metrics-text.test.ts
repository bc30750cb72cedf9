import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { metricsText } from './metrics-text.ts';

it('is the page of the registry, with what a collector says of other metrics', async () => {
  const registry = new Registry();
  const registers = [registry];
  const count = new Counter({ name: 'things_total', help: 'Things', labelNames: ['kind'], registers });
  count.inc({ kind: 'a "b"\n' });
  const seconds = new Histogram({ name: 'turn_seconds', help: 'Turns', buckets: [1, 2], registers });
  seconds.observe(1.5);
  const told = new Gauge({ name: 'told', help: 'Told by the next', registers });
  new Gauge({ name: 'teller', help: 'Tells', registers, collect: () => told.set(7) });
  const page = await metricsText(registry);
  // Once more: the first page has what was told before it.
  expect(await metricsText(registry)).toBe(await registry.metrics());
  expect(page).toContain('things_total{kind="a \\"b\\"\\n"} 1\n');
  expect(page).toContain('turn_seconds_bucket{le="2"} 1\n');
});

it('of many metrics that take long is made in several turns of the event loop', async () => {
  const registry = new Registry();
  for (let n = 0; n < 10; n++) {
    const collect = () => {
      for (const until = performance.now() + 3; performance.now() < until; );
    };
    new Gauge({ name: `slow_${n}`, help: 'Slow', registers: [registry], collect });
  }
  let turns = 0;
  let isOver = false;
  const turn = () => {
    turns++;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await metricsText(registry);
  isOver = true;
  expect(turns).toBeGreaterThan(3);
});

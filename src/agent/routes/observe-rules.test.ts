import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { parseIp } from '../../core/index.ts';
import type { RuleEvent } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';
import { logRuleEvents, ruleMetrics } from './observe-rules.ts';

function refused(packets: number, ...sources: string[]): RuleEvent {
  return { kind: 'refused', family: 'IPv4', packets, sources: sources.map(parseIp) };
}

it('tells at once of packets the tunnel refused, and then as seldom as once in ten minutes', async () => {
  const clock = new FakeClock();
  const warnings: unknown[] = [];
  const logger = { warn: (fields: unknown) => warnings.push(fields) } as unknown as Logger;
  const observe = logRuleEvents(logger, clock);
  observe(refused(3, '10.9.0.1'));
  expect(warnings).toEqual([{ family: 'IPv4', packets: 3, sources: '10.9.0.1' }]);
  for (let look = 0; look < 59; look++) {
    await clock.advance(10_000);
    observe(refused(1, '10.9.0.1', '10.9.0.2'));
  }
  expect(warnings).toHaveLength(1);
  await clock.advance(10_000);
  observe(refused(1, '10.9.0.2'));
  expect(warnings[1]).toEqual({ family: 'IPv4', packets: 60, sources: '10.9.0.2' });
});

it('tells of a fight over the rules once a minute, and how often they were repaired', async () => {
  const clock = new FakeClock();
  const lines: unknown[] = [];
  const logger = {
    warn: (fields: unknown) => lines.push(['warn', fields]),
    info: () => lines.push('info'),
    debug: () => {},
  } as unknown as Logger;
  const observe = logRuleEvents(logger, clock);
  const repaired: RuleEvent = { kind: 'synced', full: true, seconds: 0, elements: 6, repaired: true };
  for (let time = 0; time < 500; time++) {
    observe(repaired);
    await clock.advance(120);
  }
  expect(lines).toEqual(['info', ['warn', { count: 1 }]]);
  observe(repaired);
  expect(lines.slice(2)).toEqual(['info', ['warn', { count: 500 }]]);
});

it('names ten senders, of however many', () => {
  const warnings: { sources: string }[] = [];
  const logger = { warn: (fields: { sources: string }) => warnings.push(fields) } as unknown as Logger;
  logRuleEvents(logger, new FakeClock())(refused(1, ...Array.from({ length: 32 }, (_, at) => `10.9.0.${at + 1}`)));
  expect(warnings[0]!.sources.split(' ')).toHaveLength(10);
});

it('counts packets, failures and repairs', async () => {
  const registry = new Registry();
  const observe = ruleMetrics(registry);
  observe(refused(3));
  observe(refused(4));
  observe({ kind: 'syncFailed', error: new Error('x'), retryInMs: 1 });
  for (const repaired of [true, false]) observe({ kind: 'synced', full: true, seconds: 0, elements: 0, repaired });
  const text = await registry.metrics();
  expect(text).toContain('nodeplane_routes_refused_packets_total{ip_family="IPv4"} 7');
  expect(text).toContain('nodeplane_routes_rule_failures_total 1');
  expect(text).toContain('nodeplane_routes_rule_repairs_total 1');
});

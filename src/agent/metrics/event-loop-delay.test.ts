import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import type { ProxyEvent } from '../../proxy/index.ts';
import { EventLoopDelay } from './event-loop-delay.ts';

const event = (kind: 'syncStarted' | 'syncFinished') => ({ kind, family: 'IPv4', at: 0 }) as unknown as ProxyEvent;

function meter() {
  const [registry, clock] = [new Registry(), new FakeClock()];
  const delay = new EventLoopDelay(registry, clock);
  const value = async (name: string) =>
    Number(new RegExp(`^nodeplane_event_loop_delay_seconds_${name} (\\S+)$`, 'm').exec(await registry.metrics())![1]);
  const tick = async (times: number) => {
    for (let n = 0; n < times; n++) await clock.advance(10);
  };
  return { delay, clock, tick, looks: () => value('count'), sum: () => value('sum') };
}

it('looks while there is work, and not at rest', async () => {
  const { delay, tick, looks } = meter();
  await tick(1000);
  const atStart = await looks();
  expect(atStart).toBeGreaterThan(10);
  expect(atStart).toBeLessThan(50);
  delay.observe(event('syncStarted'));
  await tick(1000);
  expect(await looks()).toBe(atStart + 1000);
  delay.observe(event('syncFinished'));
  await tick(1000);
  const afterSync = await looks();
  expect(afterSync).toBeGreaterThan(atStart + 1000);
  expect(afterSync).toBeLessThan(atStart + 1005);
  delay.stir();
  await tick(1000);
  expect(await looks()).toBeLessThan(afterSync + 5);
  const atRest = await looks();
  delay.stop();
  delay.stir();
  await tick(10);
  expect(await looks()).toBe(atRest);
});

it('begins after the first turn of the loop, in which the program is loaded', async () => {
  const { clock, looks, sum } = meter();
  const now = clock.now.bind(clock);
  clock.now = () => now() + 500;
  await clock.advance(20);
  expect(await looks()).toBeGreaterThan(0);
  expect(await sum()).toBe(0);
});

it('tells by how much a look was late', async () => {
  const { delay, clock, sum } = meter();
  await clock.advance(0);
  delay.stir();
  const now = clock.now.bind(clock);
  // Timers run when somebody turns the loop; this one stood still for 70 ms meanwhile.
  clock.now = () => now() + 70;
  await clock.advance(10);
  expect(await sum()).toBeCloseTo(0.07, 5);
});

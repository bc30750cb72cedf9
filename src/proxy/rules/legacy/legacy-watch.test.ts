import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { LegacyWatch } from './legacy-watch.ts';

function setUp() {
  const clock = new FakeClock();
  const entries: Record<string, number | undefined> = { filter: 50, nat: 200 };
  let told = 0;
  const watch = new LegacyWatch({
    family: 'IPv4',
    clock,
    entries: (_family, table) => entries[table],
    flushed: () => {
      told++;
    },
  });
  return { clock, entries, watch, told: () => told };
}

it('tells of a table with fewer rules than were written, once until that is looked after', async () => {
  const { clock, entries, watch, told } = setUp();
  watch.written({ filter: 20, nat: 100 });
  await clock.advance(10_000);
  expect(told()).toBe(0);
  entries.nat = 12;
  await clock.advance(1000);
  expect(told()).toBe(1);
  await clock.advance(20_000);
  expect(told()).toBe(1);
  entries.nat = 200;
  watch.written({ filter: 20, nat: 100 });
  await clock.advance(5000);
  expect(told()).toBe(1);
});

it('is silent while somebody writes, where nothing of ours is, and where nobody knows', async () => {
  const { clock, entries, watch, told } = setUp();
  watch.written({ filter: 0, nat: 100 });
  entries.filter = 0;
  entries.nat = undefined;
  await clock.advance(5000);
  entries.nat = 0;
  watch.pause();
  await clock.advance(60_000);
  expect(told()).toBe(0);
});

import { describe, expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { FakeFlowTable, flow } from '../../../../test/fakes/fake-flow-table.ts';
import { samplePort } from '../../../../test/samples/sample-plan.ts';
import type { Flow } from '../../../netlink/conntrack/index.ts';
import { UnansweredCleaner } from './unanswered-cleaner.ts';

const nowhere = () => () => false;
const change = (...remote: string[]) => ({
  upserted: [samplePort({ name: 'test/s:main', protocol: 'TCP', clusterIp: '10.96.0.1', port: 80, remote })],
  removed: [],
});
const stuck = (id: number): Flow => ({ ...flow('10.96.0.1:80', '10.0.0.9:80', 6), id });

function setUp(...flows: readonly Flow[]) {
  const table = new FakeFlowTable(flows);
  table.answered = new Set();
  const clock = new FakeClock();
  const cleanings: number[] = [];
  const cleaner = new UnansweredCleaner({
    family: 'IPv4',
    protocols: ['TCP'],
    table,
    clock,
    cleaned: ({ deleted }) => cleanings.push(deleted),
  });
  return { table, clock, cleanings, cleaner };
}

it('ends at once what was never translated, also when many are', async () => {
  const { table, clock, cleanings, cleaner } = setUp(...[1, 2, 3].map(() => flow('10.96.0.1:80', '10.96.0.1:80', 6)));
  cleaner.note(change('10.0.0.1:80'));
  await clock.advance(5000);
  expect(cleanings).toEqual([]);
  cleaner.committed(nowhere);
  await clock.advance(0);
  expect(cleanings).toEqual([3]);
  await clock.advance(10_000);
  expect(table.listings).toHaveLength(1);
});

it('gives an endpoint that has gone a second to answer', async () => {
  const { table, clock, cleanings, cleaner } = setUp(stuck(1), stuck(2));
  cleaner.note(change('10.0.0.1:80'));
  cleaner.committed(nowhere);
  await clock.advance(999);
  expect(cleanings).toEqual([0]);
  table.answered = new Set(table.flows.filter(({ id }) => id === 2));
  await clock.advance(1);
  expect(cleanings).toEqual([0, 1]);
  expect(table.flows).toMatchObject([{ id: 2 }]);
  await clock.advance(10_000);
  expect(table.listings).toHaveLength(2);
});

it('does not go on looking for the sake of what somebody else translates', async () => {
  const { table, clock, cleanings, cleaner } = setUp();
  const list = table.list.bind(table);
  let next = 1;
  table.list = (listing) => {
    table.flows = [stuck(next++)];
    return list(listing);
  };
  cleaner.note(change('10.0.0.1:80'));
  cleaner.committed(nowhere);
  await clock.advance(10_000);
  expect(cleanings).toEqual([0, 0]);
});

it('judges nothing by what is about to change, and makes up for it afterwards', async () => {
  const { table, clock, cleanings, cleaner } = setUp(stuck(1));
  cleaner.note(change('10.0.0.1:80'));
  cleaner.committed(nowhere);
  await clock.advance(0);
  cleaner.note(change('10.0.0.9:80'));
  await clock.advance(10_000);
  expect(cleanings).toEqual([0]);
  cleaner.committed(nowhere);
  await clock.advance(0);
  expect(cleanings).toEqual([0, 0]);
  expect(table.flows).toHaveLength(1);
});

it('looks once a second, however often something changes', async () => {
  const { table, clock, cleaner } = setUp();
  for (let i = 0; i < 29; i++) {
    cleaner.note(change(`10.0.0.${i}:80`));
    cleaner.committed(nowhere);
    await clock.advance(100);
  }
  expect(table.listings).toHaveLength(3);
});

describe('where a look takes ten milliseconds', () => {
  const slow = (...flows: readonly Flow[]) => {
    const all = setUp(...flows);
    const list = all.table.list.bind(all.table);
    all.table.list = (listing) => {
      all.clock.pass(10);
      return list(listing);
    };
    return all;
  };
  const [one, other] = [change('10.0.0.1:80'), change('10.0.0.2:80')];

  it('looks at endpoints that come and go every three seconds', async () => {
    const { table, clock, cleaner } = slow();
    for (let i = 0; i < 100; i++) {
      const [now, before] = i % 2 === 0 ? [one, other] : [other, one];
      cleaner.note({ ...now, replaced: before.upserted });
      cleaner.committed(nowhere);
      await clock.advance(100);
    }
    expect(table.listings).toHaveLength(4);
  });

  it('looks a second later for a new Service, and for what it found', async () => {
    const { table, clock, cleaner } = slow();
    cleaner.note({ ...one, replaced: other.upserted });
    cleaner.committed(nowhere);
    await clock.advance(100);
    cleaner.note({ ...other, replaced: one.upserted });
    cleaner.committed(nowhere);
    await clock.advance(100);
    table.flows = [stuck(1)];
    table.answered = new Set();
    cleaner.note({ upserted: [{ ...one.upserted[0]!, key: 'test/new:main' }], removed: [] });
    cleaner.committed(nowhere);
    await clock.advance(1000);
    expect([table.listings.length, table.flows.length]).toEqual([2, 1]);
    await clock.advance(1100);
    expect([table.listings.length, table.flows.length]).toEqual([3, 0]);
  });
});

it('tries again after a failure', async () => {
  const { table, clock, cleaner } = setUp(flow('10.96.0.1:80', '10.96.0.1:80', 6), stuck(2));
  table.failure = new Error('busy');
  cleaner.note(change('10.0.0.1:80'));
  cleaner.committed(nowhere);
  await clock.advance(15_000);
  expect(table.listings).toHaveLength(2);
  table.failure = undefined;
  await clock.advance(5000);
  expect(table.flows).toMatchObject([{ id: 2 }]);
  await clock.advance(1000);
  expect(table.flows).toEqual([]);
});

it('does nothing once it was stopped', async () => {
  const { table, clock, cleaner } = setUp(stuck(1));
  cleaner.note(change('10.0.0.1:80'));
  cleaner.committed(nowhere);
  await clock.advance(0);
  await cleaner.stop();
  cleaner.committed(nowhere);
  await clock.advance(10_000);
  expect(table.listings).toHaveLength(1);
});

it('goes on after a look that went wrong, and ends all the same', async () => {
  const failures: unknown[] = [];
  const clock = new FakeClock(0, (error) => failures.push(error));
  const told: number[] = [];
  const cleaner = new UnansweredCleaner({
    family: 'IPv4',
    protocols: ['TCP'],
    table: new FakeFlowTable([flow('10.96.0.1:80', '10.96.0.1:80', 6)]),
    clock,
    cleaned: ({ deleted }) => {
      told.push(deleted);
      throw new Error('broken');
    },
  });
  for (const times of [1, 2]) {
    cleaner.note(change('10.0.0.1:80'));
    cleaner.committed(nowhere);
    await clock.advance(20_000);
    expect([told.length, failures.length]).toEqual([times, times]);
  }
  await cleaner.stop();
});

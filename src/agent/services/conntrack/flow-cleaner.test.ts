import { describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { FakeFlowTable, flow } from '../../../../test/fakes/fake-flow-table.ts';
import { samplePort } from '../../../../test/samples/sample-plan.ts';
import { parseIp } from '../../../core/index.ts';
import type { Protocol } from '../../../kube/index.ts';
import type { Flow } from '../../../netlink/conntrack/index.ts';
import { FlowCleaner } from './flow-cleaner.ts';

const service = (n: number, remote: readonly string[], protocol: Protocol = 'UDP') =>
  samplePort({ name: `test/s${n}:main`, protocol, clusterIp: `10.96.0.${n}`, port: 80, remote });
const nowhere = () => () => false;

function setUp(flows: readonly Flow[] = [], protocols?: readonly Protocol[]) {
  const table = new FakeFlowTable(flows);
  return { table, cleaner: new FlowCleaner({ family: 'IPv4', protocols, table, clock: new FakeClock() }) };
}

describe('FlowCleaner', () => {
  it('asks the kernel nothing when no UDP or SCTP port was touched', async () => {
    const { table, cleaner } = setUp();
    cleaner.note({ upserted: [service(1, [], 'TCP')], removed: [] });
    const listAddresses = vi.fn(nowhere);
    expect(await cleaner.clean(listAddresses)).toBeUndefined();
    expect(listAddresses).not.toHaveBeenCalled();
    expect(table.listings).toEqual([]);
  });

  it('asks for the protocols it was given alone', async () => {
    const { table, cleaner } = setUp([], ['UDP']);
    cleaner.note({ upserted: [service(1, [], 'SCTP')], removed: [] });
    expect(await cleaner.clean(nowhere)).toBeUndefined();
    expect(table.listings).toEqual([]);
  });

  it('deletes what is stale, once', async () => {
    const stale = flow('10.96.0.1:80', '10.0.0.2:80');
    const others = [flow('10.96.0.1:80', '10.0.0.1:80'), flow('10.96.0.2:80', '10.0.0.2:80')];
    const { table, cleaner } = setUp([stale, ...others]);
    cleaner.note({ upserted: [service(1, ['10.0.0.1:80'])], removed: [] });
    expect(await cleaner.clean(nowhere)).toEqual({ family: 'IPv4', deleted: 1, seconds: 0 });
    expect(table.flows).toEqual(others);
    expect(table.listings).toEqual([
      { family: 'IPv4', destination: expect.objectContaining({ protocol: 17, port: 80, ip: parseIp('10.96.0.1') }) },
    ]);
    expect(await cleaner.clean(nowhere)).toBeUndefined();
  });

  it('reads each protocol once when many Services were touched', async () => {
    const stale = [flow('10.96.0.3:80', '10.0.0.2:80'), flow('10.96.0.7:80', '10.0.0.2:80', 132)];
    const fresh = [flow('10.96.0.4:80', '10.0.0.4:80'), flow('10.96.0.3:81', '10.0.0.2:80')];
    const { table, cleaner } = setUp([...stale, ...fresh]);
    const udp = [1, 2, 3, 4, 5].map((n) => service(n, [`10.0.0.${n}:80`]));
    cleaner.note({ upserted: [...udp, service(7, [], 'SCTP')], removed: [] });
    expect(await cleaner.clean(nowhere)).toMatchObject({ deleted: 2 });
    expect(table.listings.map(({ protocol }) => protocol)).toEqual([17, 132]);
    expect(table.flows).toEqual(fresh);
  });

  it('judges and deletes in groups, between which others get their turn', async () => {
    const { table, cleaner } = setUp(Array.from({ length: 20_000 }, () => flow('10.96.0.1:80', '10.0.0.2:80')));
    cleaner.note({ upserted: [service(1, [])], removed: [] });
    // The turns others got before the first deletion, and from then on.
    const turns = [0, 0];
    const count = () => {
      turns[table.deletions.length > 0 ? 1 : 0]!++;
      if (table.flows.length > 0) setImmediate(count);
    };
    setImmediate(count);
    expect(await cleaner.clean(nowhere)).toMatchObject({ deleted: 20_000 });
    expect(table.deletions).toEqual([...Array<number>(78).fill(256), 32]);
    expect(turns[0]).toBeGreaterThanOrEqual(4);
    expect(turns[1]).toBeGreaterThanOrEqual(70);
  });

  it('reports a failure and looks at the same Services next time, as they are then', async () => {
    const { table, cleaner } = setUp([flow('10.96.0.1:80', '10.0.0.1:80'), flow('10.96.0.2:80', '10.0.0.1:80')]);
    table.failure = new Error('busy');
    cleaner.note({ upserted: [service(2, ['10.0.0.2:80'])], removed: [service(1, ['10.0.0.1:80'])] });
    expect(await cleaner.clean(nowhere)).toMatchObject({ deleted: 0, error: table.failure });
    table.failure = undefined;
    cleaner.note({ upserted: [service(2, ['10.0.0.1:80'])], removed: [] });
    expect(await cleaner.clean(nowhere)).toEqual({ family: 'IPv4', deleted: 1, seconds: 0 });
    expect(table.flows).toEqual([flow('10.96.0.2:80', '10.0.0.1:80')]);
  });

  it('keeps what was noted while a cleaning failed', async () => {
    const { table, cleaner } = setUp([flow('10.96.0.1:80', '10.0.0.1:80')]);
    table.failure = new Error('busy');
    cleaner.note({ upserted: [service(1, ['10.0.0.2:80'])], removed: [] });
    const cleaning = cleaner.clean(nowhere);
    cleaner.note({ upserted: [service(1, ['10.0.0.1:80'])], removed: [] });
    await cleaning;
    table.failure = undefined;
    expect(await cleaner.clean(nowhere)).toMatchObject({ deleted: 0 });
    expect(table.flows).toHaveLength(1);
  });
});

describe('FlowCleaner of unanswered flows', () => {
  const tcp = (n: number, remote: readonly string[]) => service(n, remote, 'TCP');

  function setUpUnanswered(flows: readonly Flow[], answered: readonly Flow[] = []) {
    const table = new FakeFlowTable(flows);
    table.answered = new Set(answered);
    const options = { family: 'IPv4', protocols: ['TCP'], unanswered: true, table, clock: new FakeClock() } as const;
    return { table, cleaner: new FlowCleaner(options) };
  }

  it('deletes those that wait where nobody is, however many Services were touched', async () => {
    const untranslated = flow('10.96.0.1:80', '10.96.0.1:80', 6);
    const toOneGone = flow('10.96.0.2:80', '10.0.0.9:80', 6);
    const answered = flow('10.96.0.3:80', '10.0.0.9:80', 6);
    const waiting = flow('10.96.0.4:80', '10.0.0.4:80', 6);
    const elsewhere = flow('198.51.100.7:443', '198.51.100.7:443', 6);
    const { table, cleaner } = setUpUnanswered([untranslated, toOneGone, answered, waiting, elsewhere], [answered]);
    cleaner.note({ upserted: [1, 2, 3, 4, 5, 6].map((n) => tcp(n, [`10.0.0.${n}:80`])), removed: [] });
    expect(await cleaner.clean(nowhere)).toMatchObject({ deleted: 2 });
    expect(table.flows).toEqual([answered, waiting, elsewhere]);
    expect(table.listings).toMatchObject([{ family: 'IPv4', protocol: 6, unanswered: true }]);
  });

  it('asks for the addresses of NodePorts only if there are some', async () => {
    const { cleaner } = setUpUnanswered([flow('198.51.100.7:443', '198.51.100.7:443', 6)]);
    cleaner.note({ upserted: [tcp(1, ['10.0.0.1:80'])], removed: [] });
    const listAddresses = vi.fn(nowhere);
    expect(await cleaner.clean(listAddresses)).toMatchObject({ deleted: 0 });
    expect(listAddresses).not.toHaveBeenCalled();
  });
});

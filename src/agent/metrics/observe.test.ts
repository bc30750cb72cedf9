import { pino } from 'pino';
import { expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { SYNC_FINISHED } from '../../../test/samples/sync-finished.ts';
import { logProxyEvents, logSourceProblems, recordProxyEvents } from './observe.ts';

/** A logger, and what it was told. */
function lines() {
  const told: Record<string, unknown>[] = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line: string) => void told.push(JSON.parse(line)) });
  return { logger, told };
}

it('makes an Event on the Service of what cannot be used of it, and none when that is mended', () => {
  const recorded: unknown[] = [];
  const observe = recordProxyEvents({ record: (subject, event) => void recorded.push({ ...subject, ...event }) });
  const common = { kind: 'serviceProblem', family: 'IPv4', at: 1, serviceName: 'shop/web' } as const;
  observe({ ...common, problems: ['External IP 203.0.113.1 is not served: it is another’s', 'spec.ports is odd'] });
  observe({ ...common, problems: [] });
  expect(recorded).toEqual([
    {
      kind: 'Service',
      namespace: 'shop',
      name: 'web',
      type: 'Warning',
      reason: 'ServicePartlyUnusable',
      action: 'ProgramService',
      note: 'In IPv4: External IP 203.0.113.1 is not served: it is another’s; spec.ports is odd',
      once: 'cluster',
    },
  ]);
});

it('tells of changes by others a few times, and once a minute then with how many there were; their repairs with them', async () => {
  const { logger, told } = lines();
  const clock = new FakeClock();
  const observe = logProxyEvents(logger, clock);
  const drifts = [{ object: 'chain services', difference: 'changed' }] as const;
  const repaired = { ...SYNC_FINISHED, family: 'IPv4', at: 1, full: true } as const;
  for (let second = 0; second < 90; second++) {
    observe({ kind: 'driftFound', family: 'IPv4', at: 1, drifts });
    observe(repaired);
    await clock.advance(1000);
  }
  const msgs = told.filter(({ level }) => Number(level) > 20);
  expect(msgs.filter(({ msg }) => msg === 'Synced')).toHaveLength(4);
  const changed = msgs.filter(({ msg }) => String(msg).startsWith('Somebody changed our rules'));
  expect(changed.map(({ times }) => times)).toEqual([undefined, undefined, undefined, 58]);
});

it('says of a sync what was written, whose it is, and how long it took', () => {
  const { logger, told } = lines();
  const observe = logProxyEvents(logger, new FakeClock());
  const objects = { elements: { total: 8, written: 3 }, rules: { total: 88, written: 0 } };
  observe({
    ...SYNC_FINISHED,
    family: 'IPv4',
    at: 1,
    commit: { kernelSeconds: 0.25, objects },
    deltaSize: 2,
    services: ['shop/web'],
  });
  expect(told).toEqual([
    {
      level: 30,
      family: 'IPv4',
      full: false,
      services: ['shop/web'],
      servicePorts: 2,
      written: '3 of 8 elements',
      seconds: 0.5,
      kernelSeconds: 0.25,
      msg: 'Synced',
    },
  ]);
});

it('tells a problem of an object once, and when all are mended', () => {
  const { logger, told } = lines();
  const problems = logSourceProblems(logger);
  const problem = { where: 'web.yaml:3', object: 'Service shop/web', message: 'odd' };
  problems([{ ...problem, others: 3, unread: true }]);
  problems([{ ...problem, others: 3, unread: true }]);
  problems([]);
  problems([]);
  expect(told).toEqual([
    { level: 50, ...problem, msg: 'An object cannot be read; its last good state stays in force' },
    { level: 30, msg: 'All objects are in order again' },
  ]);
});

it('names the first of very many problems, and the others once these are mended', () => {
  const { logger, told } = lines();
  const problems = logSourceProblems(logger);
  const all = Array.from({ length: 150 }, (_, index) => ({ where: `${index}.yaml:1`, message: 'odd' }));
  const names = () => told.splice(0).map((line) => ('where' in line ? line.where : 'count' in line && line.count));
  problems(all);
  expect(names()).toEqual([...all.slice(0, 100).map(({ where }) => where), 50]);
  problems(all.slice(100));
  expect(names()).toEqual(all.slice(100).map(({ where }) => where));
  problems(all.slice(100));
  expect(told).toEqual([]);
});

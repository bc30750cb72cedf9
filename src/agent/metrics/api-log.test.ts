import { pino } from 'pino';
import { beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { NodeplaneError } from '../../core/index.ts';
import { ApiLog } from './api-log.ts';

const RESOURCES = ['nodes', 'services'];
const clock = new FakeClock();
let lines: Record<string, unknown>[];
let log: ApiLog;
beforeEach(() => {
  lines = [];
  log = new ApiLog(
    pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line)) }),
    clock,
  );
});

const list = (objects: number) => {
  for (const resource of RESOURCES) log.observe({ kind: 'listed', resource, objects, seconds: 1, streamed: true });
};
const fail = (why: string) => {
  for (const resource of RESOURCES) {
    const error = new NodeplaneError('ERR_API', `GET https://192.0.2.1/api/v1/${resource} failed: ${why}`);
    log.observe({ kind: 'failed', resource, error, retryInMs: 100, relist: false });
  }
};
const said = () => lines.map(({ level, msg }) => `${level} ${msg}`);
const AWAY =
  '40 The API server cannot be read; what was written stays in force, and it is asked again and again: look whether this node reaches it';

it('tells in one line what has been read', () => {
  list(2);
  log.complete();
  expect(lines).toEqual([{ level: 30, nodes: 2, services: 2, seconds: 0, msg: 'All objects are read' }]);
});

it('does not say that all is read while a resource has not been', () => {
  fail('refused');
  log.observe({ kind: 'listed', resource: 'services', objects: 2, seconds: 1, streamed: true });
  log.complete();
  expect(lines.at(-1)).toMatchObject({
    services: 2,
    missing: ['nodes'],
    msg: 'Objects are read, but not all of them yet',
  });
});

it('says nothing of watches that end and are begun anew', () => {
  list(2);
  fail('the server closed');
  for (const resource of RESOURCES) log.observe({ kind: 'watchStands', resource });
  expect(said()).toEqual([]);
});

it('tells once of watches that the server accepts and ends at once, again and again', () => {
  list(2);
  for (let attempt = 0; attempt < 5; attempt++) {
    for (const resource of RESOURCES) log.observe({ kind: 'watchStarted', resource });
    fail('was ended by the server at once');
  }
  expect(said()).toEqual([AWAY]);
});

it('tells once why the server is not heard, and when it is again by all', async () => {
  list(2);
  for (let attempt = 0; attempt < 5; attempt++) fail('refused');
  expect(said()).toEqual([AWAY]);
  fail('no route');
  expect(said()).toEqual([AWAY, AWAY]);
  await clock.advance(7000);
  log.observe({ kind: 'watchStands', resource: 'nodes' });
  expect(said()).toEqual([AWAY, AWAY]);
  log.observe({ kind: 'watchStands', resource: 'services' });
  expect(lines.at(-1)).toEqual({ level: 30, awaySeconds: 7, msg: 'The API server is heard again' });
  fail('refused');
  fail('refused');
  expect(said().slice(3)).toEqual([AWAY]);
});

it('tells once of a certificate that has expired, whatever the clock beside it says', () => {
  for (const second of [10, 11, 12]) {
    fail(`certificate has expired; this node’s clock says 2026-01-01T00:00:${second}.123Z: set it`);
  }
  expect(said()).toEqual([AWAY]);
});

it('tells once of lists that are none, whatever group they are of', () => {
  for (const [resource, group] of [
    ['nodes', '/api/v1'],
    ['servicecidrs', '/apis/networking.k8s.io/v1'],
  ] as const) {
    const error = new NodeplaneError('ERR_API', `Cannot read the API server's list of ${group}/${resource}: no list`);
    log.observe({ kind: 'failed', resource, error, retryInMs: 100, relist: true });
  }
  expect(said()).toEqual([AWAY]);
});

it('tells every ten seconds of requests that wait for their turn', async () => {
  const wait = () => log.observe({ kind: 'heldBack', method: 'POST', path: '/events', seconds: 2 });
  for (let request = 0; request < 20; request++) wait();
  expect(said()).toEqual(['30 A request to the API server waited for its turn (--kube-api-qps, --kube-api-burst)']);
  await clock.advance(10_000);
  wait();
  expect(lines).toHaveLength(2);
});

it('tells at the start already at the first attempt', () => {
  fail('refused');
  expect(said()).toEqual([AWAY]);
});

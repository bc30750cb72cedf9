import { expect, it } from 'vitest';
import { FakeClock } from '../../../../test/fakes/fake-clock.ts';
import { makeService, makeSlice } from '../../../../test/fakes/service-objects.ts';
import { SYNC_FINISHED } from '../../../../test/samples/sync-finished.ts';
import { STATUS_LIMITS } from '../status.ts';
import { StatusRecorder } from './recorder.ts';

const FINISHED = {
  ...SYNC_FINISHED,
  family: 'IPv4',
  at: 0,
  seconds: 0.001,
  commit: { kernelSeconds: 0.001, objects: {} },
  deltaSize: 2,
} as const;

it('remembers a bounded number of syncs, and since when they fail', async () => {
  const clock = new FakeClock(0);
  const recorder = new StatusRecorder(clock);
  for (let i = 0; i < 3 * STATUS_LIMITS.syncs; i++) recorder.observe(FINISHED);
  recorder.observe({ ...FINISHED, commit: undefined });
  expect(recorder.families[0]!.syncs).toHaveLength(STATUS_LIMITS.syncs);
  for (let i = 0; i < 2; i++) {
    await clock.advance(1000);
    const failed = { kind: 'syncFailed', family: 'IPv4', at: 0, full: true, seconds: 1, stage: 'commit' } as const;
    recorder.observe({ ...failed, error: new Error('no'), retryInMs: 1 });
  }
  expect(recorder.families[0]).toMatchObject({
    failing: { since: 1000, reason: 'writing failed: no' },
    written: { at: 0 },
  });
  recorder.observe(FINISHED);
  expect(recorder.families[0]!.failing).toBeUndefined();
});

it('forgets drift when all was written anew', () => {
  const recorder = new StatusRecorder(new FakeClock());
  recorder.observe({
    kind: 'driftFound',
    family: 'IPv6',
    at: 0,
    drifts: [{ object: 'chain X', difference: 'missing' }],
  });
  expect(recorder.families[0]!.drift).toEqual(['IPv6: chain X is missing']);
  recorder.observe({ ...FINISHED, family: 'IPv6' });
  expect(recorder.families[0]!.drift).toHaveLength(1);
  recorder.observe({ ...FINISHED, family: 'IPv6', full: true });
  expect(recorder.families[0]!.drift).toEqual([]);
});

it('counts differences beyond those it keeps', () => {
  const recorder = new StatusRecorder(new FakeClock());
  const drifts = Array.from({ length: 300 }, (_, i) => ({ object: `chain ${i}`, difference: 'missing' as const }));
  recorder.observe({ kind: 'driftFound', family: 'IPv6', at: 0, drifts });
  expect(recorder.families[0]!.drift).toHaveLength(STATUS_LIMITS.drifts);
  expect(recorder.families[0]!.driftTotal).toBe(300);
  recorder.observe({ ...FINISHED, family: 'IPv6', full: true });
  expect(recorder.families[0]!.driftTotal).toBe(0);
});

it('tells changes once in a row with how often, and not what was there at the start', async () => {
  const clock = new FakeClock(0);
  const recorder = new StatusRecorder(clock);
  recorder.objectChanged({ type: 'added', object: makeService('shop/web') });
  recorder.begin();
  for (let i = 0; i < 3; i++) recorder.objectChanged({ type: 'updated', object: makeSlice('shop/web', ['10.0.0.1']) });
  await clock.advance(5000);
  recorder.objectChanged({ type: 'added', object: makeService('shop/cart') });
  expect(recorder.changes).toEqual([
    { at: 0, what: 'endpoints of shop/web', count: 3 },
    { at: 5000, what: 'Service shop/cart added', count: 1 },
  ]);
  expect([recorder.changeCount, recorder.lastChangeOf('shop/web'), recorder.lastChangeOf('shop/cart')]).toEqual([
    4, 0, 5000,
  ]);
  recorder.objectChanged({ type: 'deleted', object: makeService('shop/cart') });
  expect(recorder.lastChangeOf('shop/cart')).toBeUndefined();
});

it('remembers the last changes of so many Services and of no more', () => {
  const recorder = new StatusRecorder(new FakeClock());
  recorder.begin();
  const most = STATUS_LIMITS.lastChanges;
  for (let i = 0; i <= most; i++) recorder.objectChanged({ type: 'updated', object: makeService(`a/s${i}`) });
  expect(recorder.lastChangeOf('a/s0')).toBeUndefined();
  expect(recorder.lastChangeOf('a/s1')).toBeDefined();
  expect(recorder.changes).toHaveLength(STATUS_LIMITS.changes);
});

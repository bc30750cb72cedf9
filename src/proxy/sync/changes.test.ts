import { describe, expect, it } from 'vitest';
import { makeNode, makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { type Change, changeOf, PendingChanges, triggerTimeOf } from './changes.ts';

const ANNOTATION = 'endpoints.kubernetes.io/last-change-trigger-time';
const START = Date.parse('2026-01-01T00:00:00Z');

const sliceAt = (time: string) => makeSlice('a/x', [], { annotations: { [ANNOTATION]: time } });
const slice = (triggerTime?: number): Change => ({ kind: 'slice', triggerTime, deleted: false });
const SERVICE: Change = { kind: 'service' };
const DELETED: Change = { kind: 'slice', triggerTime: undefined, deleted: true };

describe('triggerTimeOf', () => {
  it.each([
    ['2026-01-01T00:00:01Z', START + 1000],
    ['2026-01-01T00:00:01.999707107Z', START + 1999],
    ['2026-01-01T01:00:01.5+01:00', START + 1500],
    ['yesterday', undefined],
    ['5', undefined],
    ['2026-13-45T99:99:99Z', undefined],
    ['', undefined],
  ])('of "%s"', (text, expected) => {
    expect(triggerTimeOf(sliceAt(text))).toBe(expected);
  });

  it('of a slice without the annotation', () => {
    expect(triggerTimeOf(makeSlice('a/x', []))).toBeUndefined();
  });
});

it('tells from an event what it means to a family', () => {
  const object = sliceAt('2026-01-01T00:00:01Z');
  expect(changeOf({ type: 'updated', object }, 'IPv4')).toEqual(slice(START + 1000));
  expect(changeOf({ type: 'deleted', object }, 'IPv4')).toMatchObject({ kind: 'slice', deleted: true });
  expect(changeOf({ type: 'added', object }, 'IPv6')).toBeUndefined();
  expect(changeOf({ type: 'added', object: makeService('a/x') }, 'IPv6')).toEqual(SERVICE);
  expect(changeOf({ type: 'added', object: makeNode('n1') }, 'IPv4')).toBeUndefined();
});

describe('PendingChanges', () => {
  it('hands over each dirty name once, and then is empty', () => {
    const changes = new PendingChanges(START);
    changes.add(['a/x', 'a/y'], SERVICE);
    changes.add(['a/x'], slice());
    expect(changes.counts).toEqual({ services: 1, slices: 1 });
    expect(changes.take()).toEqual({ serviceNames: ['a/x', 'a/y'], triggerTimes: [] });
    expect(changes.counts).toEqual({ services: 0, slices: 0 });
    expect(changes.take()).toEqual({ serviceNames: [], triggerTimes: [] });
  });

  it('knows of which Services something has gathered, or was handed over and is not settled', () => {
    const changes = new PendingChanges(START);
    const known = () => ['a/x', 'a/y'].filter((name) => changes.has(name));
    expect(known()).toEqual(['a/x', 'a/y']);
    changes.take();
    expect(known()).toEqual(['a/x', 'a/y']);
    changes.settle();
    expect(known()).toEqual([]);
    changes.add(['a/x'], SERVICE);
    expect(known()).toEqual(['a/x']);
    changes.take();
    changes.add(['a/y'], slice());
    expect(known()).toEqual(['a/x', 'a/y']);
    changes.settle();
    expect(known()).toEqual(['a/y']);
    changes.take();
    changes.settle();
    expect(known()).toEqual([]);
  });

  it('keeps every trigger time later than the start of the process', () => {
    const changes = new PendingChanges(START);
    for (const time of [START - 1, START, START + 1, START + 2]) changes.add(['a/x'], slice(time));
    expect(changes.take().triggerTimes).toEqual([START + 1, START + 2]);
  });

  it('forgets the times of a Service when one of its slices goes, and of no other', () => {
    const changes = new PendingChanges(START);
    changes.add(['a/x'], slice(START + 1));
    changes.add(['a/y'], slice(START + 2));
    changes.add(['a/x'], DELETED);
    changes.add(['a/x'], slice(START + 3));
    expect(changes.take()).toEqual({ serviceNames: ['a/x', 'a/y'], triggerTimes: [START + 3, START + 2] });
  });

  it('keeps the oldest times, so many and no more, while syncs fail for a day', () => {
    const changes = new PendingChanges(START);
    let most = 0;
    for (let second = 1; second <= 86_400; second++) {
      changes.add([`a/${second % 2_000}`], slice(START + second * 1000));
      // What changes all the time while one sync does not end.
      changes.add(['a/busy'], slice(START + second * 1000 + 1));
      if (second % 30 > 0) continue;
      const { triggerTimes } = changes.take();
      most = Math.max(most, triggerTimes.length);
      changes.giveBack(triggerTimes);
    }
    // The last are those of the half minute before.
    expect(most).toBe(1_000 + 30 + 16);
    const { triggerTimes } = changes.take();
    expect(triggerTimes.slice(0, 3)).toEqual([START + 1000, START + 1001, START + 2000]);
    expect(Math.max(...triggerTimes)).toBeLessThan(START + 3_600_000);
  });

  it('keeps the oldest times of a Service that changes without end', () => {
    const changes = new PendingChanges(START);
    const times = Array.from({ length: 100_000 }, (_, i) => START + 100_000 - i);
    for (const time of times) changes.add(['a/x'], slice(time));
    const { triggerTimes } = changes.take();
    expect([...triggerTimes].sort()).toEqual(times.slice(-16).sort());
  });

  it('takes times back after a failed sync and hands them over again', () => {
    const changes = new PendingChanges(START);
    changes.add(['a/x'], slice(START + 1));
    const failed = changes.take();
    changes.add(['a/y'], slice(START + 2));
    changes.giveBack(failed.triggerTimes);
    expect(changes.take()).toEqual({ serviceNames: ['a/y'], triggerTimes: [START + 1, START + 2] });
    expect(changes.take().triggerTimes).toEqual([]);
  });
});

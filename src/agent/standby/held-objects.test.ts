import { expect, it } from 'vitest';
import { makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { HeldObjects, type Listener } from './held-objects.ts';

/** A listener that writes down what it hears. */
function listening(): Listener & { readonly heard: string[] } {
  const heard: string[] = [];
  return {
    heard,
    event: ({ type, object }) => void heard.push(`${type} ${object.kind} ${object.metadata.name}`),
    listed: (kind) => void heard.push(`all of ${kind}`),
    synced: () => void heard.push('synced'),
  };
}

it('tells each object once, as it is by now, and not what is gone', () => {
  const held = new HeldObjects();
  const old = makeService('demo/web', { clusterIP: '10.96.0.1' });
  const young = makeService('demo/web', { clusterIP: '10.96.0.2' });
  held.event({ type: 'added', object: old });
  held.event({ type: 'added', object: makeService('demo/gone') });
  held.event({ type: 'added', object: makeSlice('demo/web', []) });
  held.event({ type: 'updated', object: young });
  held.event({ type: 'deleted', object: makeService('demo/gone') });
  held.synced();
  expect([held.size, held.isComplete]).toEqual([2, true]);

  const told: unknown[] = [];
  const listener = listening();
  held.release({ ...listener, event: (event) => void told.push(event.object) });
  expect(told[0]).toBe(young);
  expect(told).toHaveLength(2);
  expect(held.size).toBe(0);
});

it('tells of the same name in another namespace, or of another kind, as another object', () => {
  const held = new HeldObjects();
  for (const name of ['a/web', 'b/web']) held.event({ type: 'added', object: makeService(name) });
  held.event({ type: 'added', object: makeSlice('a/web', []) });
  expect(held.size).toBe(3);
});

it('says that all is told only when it was, and passes everything on from then on', () => {
  const held = new HeldObjects();
  const listener = listening();
  held.event({ type: 'added', object: makeService('demo/web') });
  held.release(listener);
  expect(listener.heard).toEqual(['added Service web']);
  held.event({ type: 'updated', object: makeService('demo/web') });
  held.synced();
  held.event({ type: 'deleted', object: makeService('demo/web') });
  expect(listener.heard).toEqual(['added Service web', 'updated Service web', 'synced', 'deleted Service web']);
});

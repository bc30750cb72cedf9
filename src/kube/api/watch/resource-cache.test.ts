import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apiService, apiSlice, ObjectRecorder } from '../../../../test/fakes/api-server/index.ts';
import { ENDPOINT_SLICES, SERVICES } from '../../resources.ts';
import { ResourceCache } from './resource-cache.ts';
import { targetsOf } from './target.ts';

const [services] = targetsOf(SERVICES);
const [slices] = targetsOf(ENDPOINT_SLICES);

/** A Service as the API holds it: its name, its version, and a port that stands for its content. */
interface Stored {
  readonly version: number;
  readonly port: number;
}

const item = (name: string, { version, port }: Stored) => {
  const object = apiService(`demo/${name}`, { spec: { ports: [{ port }] } });
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
};

type Step =
  | { readonly kind: 'put'; readonly name: string; readonly port: number; readonly seen: boolean }
  | { readonly kind: 'delete'; readonly name: string; readonly seen: boolean }
  /** A list that breaks after so many items, or is read to its end. */
  | { readonly kind: 'list'; readonly breaksAfter: number | undefined };

const names = fc.constantFrom('a', 'b', 'c');
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant('put' as const),
    name: names,
    port: fc.integer({ min: 1, max: 3 }),
    seen: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('delete' as const), name: names, seen: fc.boolean() }),
  fc.record({ kind: fc.constant('list' as const), breaksAfter: fc.option(fc.nat(4), { nil: undefined }) }),
);

describe('ResourceCache', () => {
  it('never deletes what exists, and is right after every complete list, whatever was missed', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const stored = new Map<string, Stored>();
        const cache = new ResourceCache(services);
        const told = new ObjectRecorder(({ type, object }) => {
          if (type === 'deleted') expect(stored.has(object.metadata.name)).toBe(false);
        });
        let version = 0;
        for (const action of steps) {
          version++;
          if (action.kind === 'put') {
            stored.set(action.name, { version, port: action.port });
            if (action.seen)
              for (const event of cache.put(item(action.name, stored.get(action.name)!))) told.event(event);
          } else if (action.kind === 'delete') {
            const object = stored.get(action.name);
            stored.delete(action.name);
            if (action.seen && object) for (const event of cache.remove(item(action.name, object))) told.event(event);
          } else {
            cache.startList();
            const items = [...stored].slice(0, action.breaksAfter);
            for (const [name, object] of items) for (const event of cache.put(item(name, object))) told.event(event);
            if (action.breaksAfter !== undefined) continue;
            for (const event of cache.finishList()) told.event(event);
            const ports = (objects: Iterable<[string, number]>) => Object.fromEntries(objects);
            const known = [...told.objects.values()].map((object): [string, number] => {
              return [object.metadata.name, object.kind === 'Service' ? object.spec.ports![0]!.port : 0];
            });
            expect(ports(known)).toEqual(ports([...stored].map(([name, { port }]) => [name, port])));
          }
        }
        expect(told.violations).toEqual([]);
      }),
      { numRuns: 1_000 },
    );
  });

  it('does not mention what a list has not changed', () => {
    const cache = new ResourceCache(services);
    const list = (version: number) => {
      cache.startList();
      return [...cache.put(item('a', { version, port: 1 })), ...cache.finishList()];
    };
    expect(list(1)).toHaveLength(1);
    expect(list(1)).toEqual([]);
    expect(list(2)).toEqual([]);
  });

  it('does not look at an object again whose version it knows', () => {
    let looks = 0;
    const resource = services;
    const cache = new ResourceCache({
      ...resource,
      project(...given) {
        looks++;
        return resource.project(...given);
      },
    });
    for (const version of [1, 1, 2]) cache.put(item('a', { version, port: 1 }));
    expect(looks).toBe(2);
  });

  it('tells of a deleted object its last known state', () => {
    const cache = new ResourceCache(services);
    const [added] = cache.put(item('a', { version: 1, port: 1 }));
    expect(cache.remove(item('a', { version: 2, port: 2 }))).toEqual([{ type: 'deleted', object: added!.object }]);
    expect(cache.remove(item('a', { version: 2, port: 2 }))).toEqual([]);
  });

  it('forgets that an object is faulty when it goes', () => {
    const cache = new ResourceCache(services);
    cache.put(item('a', { version: 1, port: 0 }));
    expect(cache.problems()).toMatchObject([
      { where: 'services', object: 'Service demo/a', field: 'spec.ports[0].port' },
    ]);
    const { problemRevision } = cache;
    cache.startList();
    expect(cache.finishList()).toEqual([]);
    expect(cache.problems()).toEqual([]);
    expect(cache.problemRevision).not.toBe(problemRevision);
  });

  it('holds equal parts of slices once', () => {
    const cache = new ResourceCache(slices);
    const addresses = ['10.244.0.1', '10.244.0.2'];
    const objects = ['demo/a', 'demo/b']
      .flatMap((name) => cache.put(apiSlice(name, addresses)))
      .map(({ object }) => object);
    const [a, b] = objects.map((object) => (object.kind === 'EndpointSlice' ? object : undefined));
    expect(a!.ports).toBe(b!.ports);
    expect(a!.endpoints![0]!.conditions).toBe(b!.endpoints![1]!.conditions);
  });
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atOnce } from '../../core/index.ts';
import { KINDS } from '../objects/kinds.ts';
import { type KubeObject, objectKey, type Service } from '../objects/types.ts';
import type { ObjectEvent } from '../source.ts';
import type { Manifest } from './manifest-file.ts';
import type { ManifestKinds } from './manifest-kinds.ts';
import { ManifestState } from './manifest-state.ts';

const kinds: ManifestKinds = new Map(Object.entries(KINDS));

// Objects are written as `name` or `name=port`, manifests as lists of them; `!` is one that cannot be used.

function service(text: string): Service {
  const [name = '', port = '80'] = text.split('=');
  return {
    kind: 'Service',
    metadata: { name, namespace: 'demo' },
    spec: { clusterIP: 'None', ports: [{ port: Number(port) }] },
  };
}

function manifest(text: string): Manifest {
  const objects = text.split(' ').filter((part) => part !== '' && part !== '!');
  return {
    objects: objects.map((part, i) => ({ object: service(part), line: () => i + 1 })),
    problems: text.includes('!') ? [{ where: 'x:1', message: 'broken' }] : [],
    refused: [],
    ignored: [],
  };
}

/** One round; null deletes a file. */
function round(state: ManifestState, files: Readonly<Record<string, string | null>>): string[] {
  const changes = Object.entries(files).map(
    ([file, text]) => [file, text === null ? undefined : manifest(text)] as const,
  );
  return state.update(new Map(changes)).map(printEvent);
}

function printEvent({ type, object }: ObjectEvent): string {
  const port = object.kind === 'Service' ? object.spec.ports?.[0]?.port : undefined;
  return `${type} ${object.metadata.name}${port === undefined || port === 80 ? '' : `=${port}`}`;
}

function problems(state: ManifestState): string[] {
  return state.problems().map(({ where, object, message }) => `${where} ${object ?? ''} ${message.split(';')[0]}`);
}

describe('changes of one file', () => {
  it('are told per object, and only where something differs', () => {
    const state = new ManifestState(kinds);
    expect(round(state, { a: 'x y z' })).toEqual(['added x', 'added y', 'added z']);
    expect(round(state, { a: 'x y z' })).toEqual([]);
    expect(round(state, { a: 'w y=81 z' })).toEqual(['deleted x', 'added w', 'updated y=81']);
    expect(round(state, { a: null })).toEqual(['deleted w', 'deleted y=81', 'deleted z']);
    expect(round(state, { a: null })).toEqual([]);
  });

  it('come in the order of kinds, then names, deletions first', () => {
    const objects: KubeObject[] = [
      { kind: 'EndpointSlice', metadata: { name: 'a', namespace: 'demo' }, addressType: 'IPv4' },
      service('b'),
      service('a'),
      { kind: 'ServiceCIDR', metadata: { name: 'c', namespace: '' } },
      { kind: 'Node', metadata: { name: 'n', namespace: '' } },
    ];
    const content = {
      objects: objects.map((object) => ({ object, line: () => 1 })),
      problems: [],
      refused: [],
      ignored: [],
    };
    const events = new ManifestState(kinds).update(new Map([['x', content]]));
    expect(events.map(({ object }) => objectKey(object))).toEqual([
      'Node n',
      'ServiceCIDR c',
      'Service demo/a',
      'Service demo/b',
      'EndpointSlice demo/a',
    ]);
  });

  it('leave what a file defined before while something in it cannot be used, and take what can', () => {
    const state = new ManifestState(kinds);
    round(state, { a: 'x y' });
    expect(round(state, { a: '! y=81 z' })).toEqual(['updated y=81', 'added z']);
    expect(problems(state)).toEqual(['x:1  broken']);
    expect(round(state, { a: '! z' })).toEqual([]);
    expect(round(state, { a: 'z' })).toEqual(['deleted x', 'deleted y=81']);
    expect(problems(state)).toEqual([]);
  });

  it('wait while the file is broken', () => {
    const state = new ManifestState(kinds);
    round(state, { a: 'x', b: 'y' });
    expect(round(state, { a: '!', b: 'y=81' })).toEqual(['updated y=81']);
    expect(problems(state)).toEqual(['x:1  broken']);
    expect(round(state, { a: 'x=82' })).toEqual(['updated x=82']);
    expect(problems(state)).toEqual([]);
  });

  it('end with the file, broken or not', () => {
    const state = new ManifestState(kinds);
    round(state, { a: 'x' });
    round(state, { a: '!' });
    expect(round(state, { a: null })).toEqual(['deleted x']);
    expect(problems(state)).toEqual([]);
  });
});

describe('the same object in two files', () => {
  it('stays with the file that had it first; the rest of the other takes force', () => {
    const state = new ManifestState(kinds);
    round(state, { b: 'x', a: 'y' });
    expect(round(state, { a: 'y=81 z x=82' })).toEqual(['updated y=81', 'added z']);
    expect(problems(state)).toEqual(['a:3 Service demo/x Already defined in "b", whose content is in force']);
    expect(round(state, { c: 'w' })).toEqual(['added w']);
    expect(problems(state)).toHaveLength(1);
    expect(round(state, { b: '' })).toEqual(['updated x=82']);
    expect(problems(state)).toEqual([]);
  });

  it('stays with the file that had it even if that file changes in the same round', () => {
    const state = new ManifestState(kinds);
    round(state, { b: 'x' });
    expect(round(state, { a: 'x=81', b: 'x=82 y' })).toEqual(['updated x=82', 'added y']);
    expect(problems(state)).toEqual(['a:1 Service demo/x Already defined in "b", whose content is in force']);
  });

  it('goes to the file first in name order when both are new', () => {
    const state = new ManifestState(kinds);
    expect(round(state, { b: 'x=2 y', a: 'x=1' })).toEqual(['added x=1', 'added y']);
    expect(problems(state)).toEqual(['b:1 Service demo/x Already defined in "a", whose content is in force']);
    expect(round(state, { a: null })).toEqual(['updated x=2']);
    expect(problems(state)).toEqual([]);
  });

  it('is named for the first twenty, and counted beyond', () => {
    const state = new ManifestState(kinds);
    const many = Array.from({ length: 25 }, (_, index) => `x${index}`).join(' ');
    round(state, { a: many, b: many });
    expect(problems(state)).toHaveLength(21);
    expect(problems(state).at(-1)).toBe('b  5 more objects are already defined in other files');
  });

  it('is a conflict with the last good state of a broken file', () => {
    const state = new ManifestState(kinds);
    round(state, { a: 'x' });
    expect(round(state, { a: '!', b: 'x=2' })).toEqual([]);
    expect(problems(state)).toEqual([
      'x:1  broken',
      'b:1 Service demo/x Already defined in "a", whose content is in force',
    ]);
    expect(round(state, { a: 'y' })).toEqual(['updated x=2', 'added y']);
    expect(problems(state)).toEqual([]);
  });
});

describe('an object that moves in one round', () => {
  it.each([
    ['a', 'b'],
    ['b', 'a'],
  ])('from %s to %s is no event, or an update', (from, to) => {
    const state = new ManifestState(kinds);
    round(state, { [from]: 'x y', [to]: 'z' });
    expect(round(state, { [from]: 'y', [to]: 'z x' })).toEqual([]);
    expect(round(state, { [from]: 'y x=81', [to]: 'z' })).toEqual(['updated x=81']);
    expect(round(state, { [from]: null, [to]: 'x=81 y z' })).toEqual([]);
    expect(problems(state)).toEqual([]);
  });

  it('may change places with another', () => {
    const state = new ManifestState(kinds);
    round(state, { a: 'x', b: 'y', c: 'z' });
    expect(round(state, { a: 'y', b: 'z', c: 'x' })).toEqual([]);
    expect(problems(state)).toEqual([]);
    expect(round(state, { a: '', b: '' })).toEqual(['deleted y', 'deleted z']);
  });

  it('moves whatever else is wrong with the file it left', () => {
    const state = new ManifestState(kinds);
    round(state, { a: 'x', b: 'y', c: 'z' });
    // a gives x to b, but also wants z, which c holds.
    expect(round(state, { a: 'z', b: 'x y' })).toEqual([]);
    expect(problems(state)).toEqual(['a:1 Service demo/z Already defined in "c", whose content is in force']);
    expect(round(state, { c: null })).toEqual([]);
    expect(problems(state)).toEqual([]);
  });
});

it('after any rounds: events add up to a state without duplicates, equal to the files once these are faultless', () => {
  const names = fc.constantFrom('x', 'y', 'z', 'x=81', 'y=81');
  const content = fc.oneof(
    {
      weight: 6,
      arbitrary: fc.uniqueArray(names, { maxLength: 3, selector: (name) => name[0] }).map((n) => n.join(' ')),
    },
    { weight: 1, arbitrary: fc.constantFrom('!', '! x', 'y ! z', null) },
  );
  const rounds = fc.array(fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), content, { noNullPrototype: true }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(rounds, (history) => {
      const state = new ManifestState(kinds);
      const told = new Map<string, string>();
      const disk = new Map<string, string>();
      for (const files of history) {
        for (const event of state.update(
          new Map(Object.entries(files).map(([file, text]) => [file, text === null ? undefined : manifest(text)])),
        )) {
          const key = objectKey(event.object);
          expect(event.type === 'added').toBe(!told.has(key));
          if (event.type === 'deleted') told.delete(key);
          else told.set(key, printEvent(event).split(' ')[1]!);
        }
        for (const [file, text] of Object.entries(files)) {
          if (text === null) disk.delete(file);
          else disk.set(file, text);
        }
        const wanted = [...disk.values()].flatMap((text) => text.split(' ')).filter((part) => part !== '');
        const isFaultless = new Set(wanted.map((part) => part[0])).size === wanted.length && !wanted.includes('!');
        atOnce(state.lookBetween());
        expect(state.problems().length === 0).toBe(isFaultless);
        if (isFaultless) expect([...told.values()].sort()).toEqual(wanted.sort());
      }
    }),
    { numRuns: 2000 },
  );
});

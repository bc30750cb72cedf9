import { expect, it } from 'vitest';
import type { Node, Service } from './objects/types.ts';
import { ObjectsOf } from './store.ts';

const node = (name: string): Node => ({ kind: 'Node', metadata: { name, namespace: '' } });
const service: Service = { kind: 'Service', metadata: { name: 'web', namespace: 'demo' }, spec: {} };

it('holds the wanted objects of its kind by name, and names what each event touched', () => {
  const nodes = new ObjectsOf('Node', ({ metadata }) => metadata.labels?.wanted !== 'no');
  expect(nodes.apply({ type: 'added', object: service })).toBeUndefined();
  expect(nodes.apply({ type: 'added', object: node('a') })).toBe('a');
  expect(nodes.apply({ type: 'updated', object: node('b') })).toBe('b');
  expect([...nodes.names()]).toEqual(['a', 'b']);
  expect([...nodes.values()]).toEqual([node('a'), node('b')]);
  const unwanted: Node = { kind: 'Node', metadata: { name: 'a', namespace: '', labels: { wanted: 'no' } } };
  expect(nodes.apply({ type: 'updated', object: unwanted })).toBe('a');
  expect(nodes.get('a')).toBeUndefined();
  expect(nodes.apply({ type: 'deleted', object: unwanted })).toBeUndefined();
  expect(nodes.apply({ type: 'deleted', object: node('b') })).toBe('b');
  expect([...nodes.names()]).toEqual([]);
});

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';
import { decodeObject, KINDS, type ObjectEvent, type PodCIDRBlock } from '../kube/index.ts';
import { blockName, nodeHash } from './block-name.ts';
import { BlockView } from './block-view.ts';
import { blockAt, parsePools } from './pool.ts';

const POOLS = parsePools([{ cidr: '10.0.0.0/8' }]);

/** As the API server sends it. */
function stored(index: number, state = 'confirmed'): string {
  const cidr = blockAt(POOLS[0]!, index);
  const node = `node-${index}.europe-west1-b.c.some-project.internal`;
  const labels = { 'nodeplane.io/node-hash': nodeHash(node) };
  const now = '2026-11-22T10:00:00.000Z';
  const spec = { cidr, pool: '10.0.0.0/8', node, nodeUID: `uid-${index}`, holder: 'h', state, claimedAt: now };
  const metadata = { name: blockName(cidr), uid: `block-${index}`, resourceVersion: String(index), labels };
  return JSON.stringify({ apiVersion: 'nodeplane.io/v1alpha1', kind: 'PodCIDRBlock', metadata, spec });
}

function decoded(index: number, state?: string): PodCIDRBlock {
  return decodeObject(KINDS.PodCIDRBlock, JSON.parse(stored(index, state))).object!;
}

function viewOf(nodes: number): BlockView {
  const view = new BlockView('me', POOLS);
  for (let index = 0; index < nodes; index++) {
    const { spec } = decoded(index);
    const metadata = { name: spec.node, namespace: '', uid: spec.nodeUID! };
    view.apply({ type: 'added', object: { kind: 'Node', metadata } });
    view.apply({ type: 'added', object: decoded(index) });
  }
  return view;
}

describe('the view', () => {
  it('suspects what is not confirmed, and what belongs to no Node, whichever comes first', () => {
    const view = new BlockView('me', POOLS);
    const suspicious = () => [...view.suspicious()].map(({ metadata }) => metadata.name);
    const block = decoded(7);
    view.apply({ type: 'added', object: block });
    expect(suspicious()).toEqual([block.metadata.name]);
    const node = (uid: string) => {
      return { kind: 'Node', metadata: { name: block.spec.node, namespace: '', uid } } as const;
    };
    view.apply({ type: 'added', object: node('uid-7') });
    expect(suspicious()).toEqual([]);
    view.apply({ type: 'updated', object: node('another') });
    expect(suspicious()).toHaveLength(1);
    view.apply({ type: 'updated', object: node('uid-7') });
    view.apply({ type: 'updated', object: decoded(7, 'pending') });
    expect(suspicious()).toHaveLength(1);
    view.apply({ type: 'deleted', object: decoded(7) });
    expect(suspicious()).toEqual([]);
    expect([view.owners, view.pools[0]!.free]).toEqual([0, 2 ** 18]);
  });

  it('tells what is about this node from the rest', () => {
    const view = viewOf(3);
    const { spec, ...rest } = decoded(9);
    expect(view.apply({ type: 'added', object: decoded(4) })).toBe(false);
    const own = { ...rest, spec: { ...spec, node: 'me' } };
    expect(view.apply({ type: 'added', object: own })).toBe(true);
    expect(view.own()).toEqual([own]);
    expect(view.apply({ type: 'deleted', object: own })).toBe(true);
    expect(view.own()).toEqual([]);
  });

  it('of 5,000 nodes takes less than 8 MiB', () => {
    setFlagsFromString('--expose-gc');
    const collect: () => void = runInNewContext('gc');
    collect();
    const before = process.memoryUsage();
    const view = viewOf(5_000);
    collect();
    const after = process.memoryUsage();
    const bytes = after.heapUsed - before.heapUsed + after.arrayBuffers - before.arrayBuffers;
    expect(view.owners).toBe(5_000);
    expect(bytes).toBeLessThan(8 * 2 ** 20);
  });

  it('takes an event in with as many operations, however many blocks there are', () => {
    const operationsOf = (nodes: number) => {
      const view = viewOf(nodes);
      const node = { kind: 'Node', metadata: { name: decoded(5).spec.node, namespace: '', uid: 'uid-5' } } as const;
      const events: readonly ObjectEvent[] = [
        { type: 'updated', object: decoded(5, 'releasing') },
        { type: 'deleted', object: decoded(5) },
        { type: 'added', object: decoded(5) },
        { type: 'deleted', object: node },
        { type: 'updated', object: node },
      ];
      const spies = [Map.prototype, Set.prototype].flatMap((prototype) =>
        COUNTED.filter((method) => method in prototype).map((method) =>
          vi.spyOn(prototype as unknown as AnyMethods, method),
        ),
      );
      for (const event of events) view.apply(event);
      const calls = spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0);
      for (const spy of spies) spy.mockRestore();
      return calls;
    };
    const few = operationsOf(10);
    expect(few).toBeGreaterThan(10);
    expect(operationsOf(5_000)).toBe(few);
  });
});

/** What may loop over a collection, or is called in such a loop. */
const COUNTED = ['get', 'set', 'add', 'has', 'delete', 'values', 'keys', 'entries', 'forEach'] as const;
type AnyMethods = Record<(typeof COUNTED)[number], (...parameters: unknown[]) => unknown>;

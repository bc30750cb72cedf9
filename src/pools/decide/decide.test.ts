import { beforeEach, describe, expect, it } from 'vitest';
import type { PodCIDRBlock } from '../../kube/index.ts';
import { BlockView } from '../block-view.ts';
import { parsePools } from '../pool.ts';
import { poolTimes } from '../times.ts';
import type { BlockOutcome, BlockRequest } from './block-request.ts';
import { type Decision, decide } from './decide.ts';
import { learn, sending } from './learn.ts';
import { type Memory, NO_MEMORY } from './memory.ts';
import type { Situation } from './situation.ts';

const POOL = parsePools([{ cidr: '10.244.0.0/24', blockSize: 26 }]);
const A = '10.244.0.0/26';
const B = '10.244.0.64/26';
const MINUTE = 60_000;

let now: number;
let view: BlockView;
let memory: Memory;
let used: Map<string, number>;

beforeEach(() => {
  now = 1_000_000;
  view = new BlockView('me', POOL);
  memory = NO_MEMORY;
  used = new Map();
  setNode('me', 'u1');
});

function setNode(name: string, uid: string | undefined): void {
  const metadata = { name, namespace: '', uid: uid ?? '' };
  view.apply({ type: uid === undefined ? 'deleted' : 'updated', object: { kind: 'Node', metadata } });
}

function block(cidr: string, spec: Partial<PodCIDRBlock['spec']> = {}, resourceVersion = '1'): PodCIDRBlock {
  const metadata = { name: cidr.replace(/[./]/g, '-'), namespace: '', uid: `uid ${cidr}`, resourceVersion };
  return { kind: 'PodCIDRBlock', metadata, spec: { cidr, node: 'me', nodeUID: 'u1', holder: 's', ...spec } };
}

function show(...blocks: readonly PodCIDRBlock[]): void {
  for (const object of blocks) view.apply({ type: 'updated', object });
}

function situation(): Situation {
  const use = (cidr: string) => ({ used: used.get(cidr) ?? 0, free: 61 - (used.get(cidr) ?? 0) });
  return { now, node: 'me', session: 's', view, use, times: poolTimes(), random: () => 0 };
}

function next(): Decision {
  const decision = decide(situation(), memory);
  memory = decision.request ? sending(decision.request, decision.memory) : decision.memory;
  return decision;
}

function answer(request: BlockRequest, outcome: BlockOutcome): void {
  memory = learn(request, { sentAt: now, outcome }, situation(), memory);
}

/** What is sent first, once the Node was looked at. */
function afterLook(uid: string | 'none' = 'u1'): Decision {
  answer({ kind: 'lookAtNode' }, { kind: 'done', uid: uid === 'none' ? undefined : uid });
  return next();
}

const usable = ({ usable: blocks }: Decision) => blocks.map(({ cidr }) => cidr);

describe('own blocks', () => {
  it('are claimed after a look at the Node, one at a time', () => {
    expect(next().request).toEqual({ kind: 'lookAtNode' });
    const { request } = afterLook();
    expect(request).toMatchObject({ kind: 'claim', family: 'IPv4', nodeUID: 'u1' });
    answer(request!, { kind: 'done' });
    expect(next().request).toBeUndefined();
  });

  it('are claimed elsewhere where another node was faster', () => {
    const first = afterLook().request!;
    answer(first, { kind: 'beaten' });
    expect(next()).toMatchObject({ request: undefined, againMs: expect.closeTo(250, -1) });
    now += 250;
    const second = next().request!;
    expect(second.kind).toBe('claim');
    expect(second).not.toEqual(first);
  });

  it('are not usable while pending, and confirmed unless another range overlaps', () => {
    show(block(A, { state: 'pending' }));
    expect(afterLook()).toMatchObject({ usable: [], request: { kind: 'confirm' } });
    show(block('10.244.0.32/27', { node: 'other' }));
    expect(next()).toMatchObject({ usable: [], request: { kind: 'remove' } });
  });

  it('are taken up by a new process before it uses them, and left to a newer one', () => {
    show(block(A, { holder: 'earlier' }));
    expect(afterLook()).toMatchObject({ usable: [], request: { kind: 'renew', nodeUID: 'u1' } });
    show(block(A, {}, '2'));
    expect(usable(next())).toEqual([A]);
    show(block(A, { holder: 'later' }, '3'));
    expect(next()).toMatchObject({ usable: [], request: undefined, problems: [{ code: 'ERR_POOL' }] });
  });

  it('are no longer usable when nothing proves that they are ours', () => {
    show(block(A));
    expect(afterLook().usable).toEqual([{ cidr: A, until: now + 10 * MINUTE }]);
    now += 10 * MINUTE;
    const late = next();
    expect(late).toMatchObject({ usable: [], request: { kind: 'lookAtNode' } });
    expect(late.problems[0]?.message).toContain(`No addresses are given out of block ${A}`);
    expect(usable(afterLook())).toEqual([A]);
  });

  it('are renewed while the Node is deleted', () => {
    show(block(A));
    afterLook();
    setNode('me', undefined);
    now += MINUTE;
    const { request } = afterLook('none');
    expect(request).toMatchObject({ kind: 'renew', nodeUID: undefined });
    now += 9.5 * MINUTE;
    answer(request!, { kind: 'done' });
    expect(next().usable).toEqual([{ cidr: A, until: now + 10 * MINUTE }]);
  });

  it('stay with a Node that was registered again if they have pods: it is the same machine', () => {
    show(block(A), block(B));
    used.set(A, 3);
    afterLook();
    setNode('me', 'u2');
    const { request, usable: blocks } = afterLook('u2');
    expect(request).toMatchObject({ kind: 'renew', nodeUID: 'u2', block: { spec: { cidr: A } } });
    // Until that is done, others may still take it.
    expect(blocks.map(({ cidr }) => cidr)).not.toContain(B);
    show(block(A, { nodeUID: 'u2' }, '2'));
    expect(usable(next())).toEqual([A]);
  });

  it('are given back when they were empty twice, but for the last one', () => {
    show(block(A), block(B));
    expect(usable(afterLook())).toEqual([B]);
    now += 59_999;
    used.set(A, 1);
    expect(usable(next())).toEqual([A]);
    used.delete(A);
    used.set(B, 1);
    expect(usable(next())).toEqual([B]);
    now += MINUTE;
    const { request } = next();
    expect(request).toMatchObject({ kind: 'release', block: { spec: { cidr: A } } });
    // Nobody knows whether it was done: never again, then.
    answer(request!, { kind: 'failed', retryAfterMs: 0 });
    used.set(B, 61);
    expect(usable(next())).toEqual([B]);
    show(block(A, { state: 'releasing' }, '2'));
    expect(next().request).toMatchObject({ kind: 'remove', block: { metadata: { resourceVersion: '2' } } });
  });

  it('of pools that are no longer configured get no more pods, and go when the last one is gone', () => {
    const old = block('10.9.0.0/26');
    show(old);
    used.set('10.9.0.0/26', 1);
    expect(afterLook()).toMatchObject({ usable: [], request: { kind: 'claim' } });
    used.clear();
    show(block(A));
    expect(next().request).toBeUndefined();
    now += MINUTE;
    expect(next().request).toMatchObject({ kind: 'release', block: old });
  });

  it('are tried again after ever longer waits, each for itself', () => {
    const { request } = afterLook();
    answer(request!, { kind: 'failed', retryAfterMs: 0 });
    expect(next().againMs).toBe(250);
    now += 250;
    answer(next().request!, { kind: 'failed', retryAfterMs: 3_000 });
    expect(next().againMs).toBe(3_000);
  });
});

describe('what others left behind', () => {
  beforeEach(() => {
    show(block(A));
    used.set(A, 1);
    afterLook();
  });

  const theirs = (spec: Partial<PodCIDRBlock['spec']>, version = '1') =>
    block(B, { node: 'other', nodeUID: 'gone', holder: 't', ...spec }, version);

  /** Time passes in short steps, with looks at our own Node. Returns the first request about the other block. */
  function firstRequest(minutes: number): BlockRequest | undefined {
    const end = now + minutes * MINUTE;
    for (; now <= end; now += 10_000) {
      const { request } = next();
      if (request?.kind === 'lookAtNode') answer(request, { kind: 'done', uid: 'u1' });
      else if (request) return request;
    }
    return undefined;
  }

  it('is taken after a proof that its Node is gone, and 15 minutes without a change', () => {
    show(theirs({}));
    const look = firstRequest(1)!;
    expect(look.kind).toBe('lookForNode');
    answer(look, { kind: 'done', uid: undefined });
    expect(firstRequest(14)).toBeUndefined();
    show(theirs({}, '2'));
    answer(firstRequest(1)!, { kind: 'done', uid: undefined });
    expect(firstRequest(14)).toBeUndefined();
    const release = firstRequest(2)!;
    expect(release).toMatchObject({ kind: 'release', block: { metadata: { resourceVersion: '2' } } });
    answer(release, { kind: 'done' });
    show(theirs({ state: 'releasing' }, '3'));
    expect(firstRequest(1)).toMatchObject({ kind: 'remove' });
  });

  it('is left alone when its Node is there, whatever the view says', () => {
    show(theirs({}));
    answer(firstRequest(1)!, { kind: 'done', uid: 'gone' });
    expect(firstRequest(14)).toBeUndefined();
    setNode('other', 'gone');
    expect(firstRequest(60)).toBeUndefined();
  });

  it.each(['pending', 'releasing'] as const)('is deleted when it stays %s for two minutes', (state) => {
    setNode('other', 'there');
    show(theirs({ state, nodeUID: 'there' }));
    expect(firstRequest(1.9)).toBeUndefined();
    expect(firstRequest(0.5)).toMatchObject({ kind: 'remove' });
  });

  it('is not ours because of the name alone', () => {
    const namesake = block(B, { nodeUID: 'u0', holder: 'earlier' });
    show(namesake);
    expect(firstRequest(1)).toMatchObject({ kind: 'lookForNode', block: namesake });
  });
});

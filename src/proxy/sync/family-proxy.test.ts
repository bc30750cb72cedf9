import fc from 'fast-check';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FamilyBench } from '../../../test/fakes/family-bench.ts';
import { makeService } from '../../../test/fakes/service-objects.ts';
import { samplePlanner } from '../../../test/samples/sample-plan.ts';
import { BackgroundFailure, type IpAddress, parseIp } from '../../core/index.ts';
import { type Plan, type PlanDelta, samePortPlan } from '../plan/index.ts';
import type { Change } from './changes.ts';

const SERVICE: Change = { kind: 'service' };
const slice = (triggerTime?: number): Change => ({ kind: 'slice', triggerTime, deleted: false });

let bench: FamilyBench;

beforeEach(() => {
  bench = new FamilyBench();
});

it('writes nothing before start, then everything in one resync', async () => {
  bench.put('a/x', '10.0.0.1');
  bench.proxy.touch(['a/x'], SERVICE);
  bench.proxy.nodeChanged();
  bench.proxy.resync();
  await bench.clock.advance(60_000);
  expect(bench.dataplane.calls).toEqual([]);
  expect(bench.kinds).toEqual(['changed']);

  bench.proxy.start();
  await bench.clock.advance(0);
  expect(bench.dataplane.calls.map(({ method, planKeys }) => [method, planKeys])).toEqual([['resync', ['a/x:/TCP']]]);
  expect(bench.kinds).toEqual(['changed', 'started', 'queued', 'syncStarted', 'syncFinished']);
  expect(bench.last('syncFinished')).toMatchObject({ family: 'IPv4', full: true, deltaSize: 1 });
});

describe('a change', () => {
  beforeEach(async () => {
    bench.put('a/x', '10.0.0.1');
    bench.put('a/y', '10.0.0.2');
    await bench.settle();
  });

  it('goes to the dataplane alone and at once', async () => {
    bench.put('a/x', '10.0.0.1', '10.0.0.3');
    bench.proxy.touch(['a/x'], slice());
    await bench.clock.advance(0);
    expect(bench.dataplane.calls).toEqual([
      expect.objectContaining({ method: 'sync', upserted: ['a/x:/TCP'], removed: [] }),
    ]);
    expect(bench.kinds).toEqual(['changed', 'queued', 'syncStarted', 'syncFinished']);
    expect(bench.last('changed')).toMatchObject({ object: 'slice', pending: { services: 0, slices: 1 } });
    expect(bench.last('syncFinished')).toMatchObject({
      full: false,
      deltaSize: 1,
      commit: { objects: { nat: { total: 2, written: 1 } } },
    });
  });

  it('that makes no difference is a successful sync without the dataplane', async () => {
    bench.proxy.touch(['a/x'], slice(bench.clock.now()));
    await bench.clock.advance(0);
    expect(bench.dataplane.calls).toEqual([]);
    expect(bench.last('syncFinished')).toMatchObject({ deltaSize: 0, commit: undefined, full: false });
    expect(bench.last('syncFinished').triggerTimes).toEqual([bench.clock.now()]);
  });

  it('made while a sync runs is written by the next one', async () => {
    const release = bench.dataplane.hold();
    bench.put('a/x', '10.0.0.8');
    bench.proxy.touch(['a/x'], SERVICE);
    await bench.clock.advance(0);
    bench.put('a/y', '10.0.0.9');
    bench.proxy.touch(['a/y'], SERVICE);
    release();
    await bench.clock.advance(5_000);
    expect(bench.dataplane.calls.map((call) => call.upserted)).toEqual([['a/x:/TCP'], ['a/y:/TCP']]);
  });

  it('reads nothing but the objects concerned, among any number', async () => {
    for (let i = 0; i < 10_000; i++) bench.put(`many/s${i}`, '10.0.0.1');
    bench.proxy.resync();
    await bench.clock.advance(5_000);
    bench.put('many/s77', '10.0.0.9');
    bench.store.reads = 0;
    bench.proxy.touch(['many/s77'], slice());
    await bench.clock.advance(0);
    expect(bench.dataplane.calls.at(-1)).toMatchObject({ method: 'sync', upserted: ['many/s77:/TCP'] });
    expect(bench.store.reads).toBe(2);
  }, 30_000);

  it('takes the time it takes', async () => {
    const release = bench.dataplane.hold();
    bench.put('a/x', '10.0.0.8');
    bench.proxy.touch(['a/x'], SERVICE);
    await bench.clock.advance(250);
    release();
    await bench.clock.advance(0);
    expect(bench.last('syncFinished').seconds).toBe(0.25);
  });
});

describe('after a failed sync', () => {
  beforeEach(async () => {
    bench.put('a/x', '10.0.0.1');
    await bench.settle();
    bench.dataplane.failNext(new Error('The kernel refuses'));
    bench.put('a/x', '10.0.0.2');
  });

  it('the next one is a resync that contains the change', async () => {
    const triggered = bench.clock.now();
    bench.proxy.touch(['a/x'], slice(triggered));
    await bench.clock.advance(0);
    expect(bench.last('syncFailed')).toMatchObject({
      error: new Error('The kernel refuses'),
      full: false,
      stage: 'commit',
      retryInMs: 1_000,
    });
    await bench.clock.advance(1_000);
    expect(bench.dataplane.calls.map(({ method }) => method)).toEqual(['sync', 'resync']);
    expect(bench.dataplane.kernel.get('a/x:/TCP')!.clusterEndpoints[0]!.key).toBe('10.0.0.2:8080');
    expect(bench.last('syncFinished')).toMatchObject({ full: true, triggerTimes: [triggered] });
  });

  it('a store that fails is a failure of planning, and retried as well', async () => {
    vi.spyOn(bench.store, 'serviceNames').mockImplementationOnce(() => {
      throw new Error('The store is broken');
    });
    bench.proxy.resync();
    await bench.clock.advance(0);
    expect(bench.last('syncFailed')).toMatchObject({ stage: 'plan', full: true });
    expect(bench.dataplane.calls).toEqual([]);
  });
});

describe('tracked flows', () => {
  it('are told of each change before it is committed, and cleaned after each commit that succeeds', async () => {
    const calls: string[] = [];
    const flows = {
      note: ({ upserted, removed, replaced = [] }: PlanDelta) =>
        void calls.push(`note +${upserted.length} -${removed.length} ~${replaced.length}`),
      clean: async ({ ports }: Plan, _: unknown, isWhole: boolean) =>
        void calls.push(`clean ${isWhole ? 'whole ' : ''}${ports.size}`),
    };
    bench = new FamilyBench([], { flows });
    bench.put('a/x', '10.0.0.1');
    await bench.settle();
    bench.put('a/x', '10.0.0.2');
    bench.dataplane.failNext(new Error('refused'));
    bench.proxy.touch(['a/x'], SERVICE);
    await bench.clock.advance(0);
    expect(calls).toEqual(['note +1 -0 ~0', 'clean 1', 'note +1 -0 ~1']);
    await bench.clock.advance(5_000);
    expect(calls.slice(3)).toEqual(['note +0 -0 ~0', 'clean whole 1']);
    bench.put('a/y', '10.0.0.3');
    bench.proxy.touch(['a/y'], SERVICE);
    await bench.clock.advance(1_000);
    expect(calls.slice(5)).toEqual(['note +1 -0 ~0', 'clean 2']);
  });
});

it('lists the addresses of the machine for a change only if the cleaning of flows asks for them', async () => {
  const localAddresses = vi.fn(() => ({ all: [parseIp('192.0.2.1')], own: [] }));
  let asks = false;
  const clean = async (_: Plan, list: () => readonly IpAddress[]) => void (asks && list());
  bench = new FamilyBench([], { localAddresses, flows: { note: () => {}, clean } });
  await bench.settle();
  localAddresses.mockClear();
  const change = async (...endpoints: string[]) => {
    bench.put('a/x', ...endpoints);
    bench.proxy.touch(['a/x'], SERVICE);
    await bench.clock.advance(2_000);
  };
  await change('10.0.0.1');
  expect(localAddresses).not.toHaveBeenCalled();
  asks = true;
  await change('10.0.0.2');
  expect(localAddresses).toHaveBeenCalledOnce();
});

it('makes a full sync once in the longest interval without being asked', async () => {
  await bench.settle();
  await bench.clock.advance(3_600_000);
  expect(bench.dataplane.calls.map(({ method }) => method)).toEqual(['resync']);
});

it('reports the problems of a Service and serves the others', async () => {
  bench.put('a/x', '10.0.0.1');
  bench.put('a/y', 'rubbish');
  bench.store.services.set('a/z', { ...makeService('a/z'), spec: { clusterIP: 7 as never } });
  bench.proxy.start();
  await bench.clock.advance(0);
  expect(bench.events.filter(({ kind }) => kind === 'serviceProblem')).toEqual([
    expect.objectContaining({ serviceName: 'a/y', problems: [expect.stringContaining('"rubbish"')] }),
    expect.objectContaining({ serviceName: 'a/z', problems: [expect.stringContaining('cannot be planned')] }),
  ]);
  expect([...bench.dataplane.kernel.keys()]).toEqual(['a/x:/TCP', 'a/y:/TCP']);
});

describe('verification', () => {
  const DRIFT = [{ object: 'jump nat PREROUTING -> KUBE-SERVICES', difference: 'missing' }] as const;

  beforeEach(async () => {
    bench = new FamilyBench([], { verifyIntervalMs: 30_000 });
    bench.put('a/x', '10.0.0.1');
    await bench.settle();
  });

  it('says nothing while nothing differs', async () => {
    await bench.clock.advance(90_000);
    expect(bench.dataplane.verifications).toBe(3);
    expect(bench.kinds).toEqual(['verified', 'verified', 'verified']);
    expect(bench.dataplane.calls).toEqual([]);
  });

  it('reports drift and repairs it at once by a full sync', async () => {
    bench.dataplane.drift = DRIFT;
    await bench.clock.advance(30_000);
    expect(bench.kinds).toEqual(['driftFound', 'queued', 'syncStarted', 'syncFinished']);
    expect(bench.last('driftFound').drifts).toEqual(DRIFT);
    expect(bench.last('queued').reason).toBe('drift');
    expect(bench.last('syncFinished').at).toBe(bench.last('driftFound').at);
    expect(bench.dataplane.calls.map(({ method }) => method)).toEqual(['resync']);
    await bench.clock.advance(60_000);
    expect(bench.events.filter(({ kind }) => kind === 'driftFound')).toHaveLength(1);
  });

  it('waits for the sync in flight', async () => {
    const release = bench.dataplane.hold();
    bench.put('a/x', '10.0.0.2');
    bench.proxy.touch(['a/x'], SERVICE);
    await bench.clock.advance(40_000);
    expect(bench.dataplane.verifications).toBe(0);
    release();
    await bench.clock.advance(0);
    expect(bench.dataplane.verifications).toBe(1);
    expect(bench.kinds).not.toContain('verifyFailed');
  });

  it('goes on, by a full sync, with Service ports that are left out without having been tried', async () => {
    const suspect = { key: 'a/x:/TCP', name: 'a/x', reason: 'Not tried', untried: true };
    bench.dataplane.leftOut = [suspect];
    bench.proxy.resync();
    await bench.clock.advance(5_000);
    bench.events.length = 0;
    bench.dataplane.leftOut = [];
    await bench.clock.advance(30_000);
    expect(bench.kinds).toEqual(['queued', 'syncStarted', 'leftOut', 'syncFinished']);
    await bench.clock.advance(30_000);
    expect(bench.kinds.slice(4)).toEqual(['verified']);
  });

  it('that fails is reported and made again', async () => {
    bench.dataplane.failNext(new Error('No lock'));
    await bench.clock.advance(60_000);
    expect(bench.kinds).toEqual(['verifyFailed', 'verified']);
    expect(bench.last('verifyFailed').error).toEqual(new Error('No lock'));
    expect(bench.dataplane.verifications).toBe(2);
  });
});

it('reports which Service ports were left out, each time this changes', async () => {
  const leftOut = [{ key: 'a/x:/TCP', name: 'a/x', reason: 'Bad rule' }];
  bench.dataplane.leftOut = leftOut;
  bench.put('a/x', '10.0.0.1');
  bench.proxy.start();
  await bench.clock.advance(5_000);
  expect(bench.last('leftOut').ports).toEqual(leftOut);
  bench.events.length = 0;
  bench.dataplane.leftOut = [{ ...leftOut[0]! }];
  bench.proxy.resync();
  await bench.clock.advance(5_000);
  expect(bench.kinds).not.toContain('leftOut');
  bench.dataplane.leftOut = [];
  bench.proxy.resync();
  await bench.clock.advance(5_000);
  expect(bench.last('leftOut').ports).toEqual([]);
});

it('stops after the sync in flight and leaves the kernel alone', async () => {
  bench.put('a/x', '10.0.0.1');
  await bench.settle();
  const release = bench.dataplane.hold();
  bench.put('a/x', '10.0.0.2');
  bench.proxy.touch(['a/x'], SERVICE);
  await bench.clock.advance(0);
  const stopping = bench.proxy.stop();
  bench.put('a/y', '10.0.0.3');
  bench.proxy.touch(['a/y'], SERVICE);
  release();
  await stopping;
  await bench.clock.advance(7_200_000);
  expect(bench.dataplane.calls).toHaveLength(1);
  expect([...bench.dataplane.kernel.keys()]).toEqual(['a/x:/TCP']);
});

it('takes a cleaning of flows that rejects for no failure of the sync, and tells it', async () => {
  const clean = () => Promise.reject(new Error('No conntrack'));
  bench = new FamilyBench([], { flows: { note: () => {}, clean } });
  bench.put('a/x', '10.0.0.1');
  bench.proxy.start();
  await bench.clock.advance(10_000);
  expect(bench.kinds).toEqual(['started', 'queued', 'syncStarted', 'syncFinished', 'workFailed']);
  expect(bench.last('workFailed')).toMatchObject({ work: 'flow cleaning', error: new Error('No conntrack') });
});

it('is not harmed by an observer that throws', async () => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  bench = new FamilyBench([
    () => {
      throw new Error('I am broken');
    },
  ]);
  bench.proxy.start();
  await bench.clock.advance(0);
  expect(bench.last('syncFinished').full).toBe(true);
  expect(warning).toHaveBeenCalledWith(new BackgroundFailure('observer', new Error('I am broken')));
  warning.mockRestore();
});

it('brings the kernel to the state of the objects through any sequence of changes and failures', async () => {
  const step = fc.record({
    name: fc.constantFrom('a/x', 'a/y', 'a/z'),
    exists: fc.boolean(),
    endpoints: fc.uniqueArray(fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3')),
    fails: fc.boolean(),
    waitMs: fc.constantFrom(0, 10, 1_500),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const one = new FamilyBench();
      one.proxy.start();
      for (const { name, exists, endpoints, fails, waitMs } of steps) {
        if (fails) one.dataplane.failNext();
        one.put(name, ...endpoints);
        if (!exists) one.store.services.delete(name);
        one.proxy.touch([name], SERVICE);
        await one.clock.advance(waitMs);
      }
      await one.clock.advance(600_000);
      const fresh = samplePlanner({ node: one.proxy.plan.node });
      await fresh.rebuild(one.store);
      expect([...one.dataplane.kernel.keys()].sort()).toEqual([...fresh.plan.ports.keys()].sort());
      for (const [key, port] of fresh.plan.ports) expect(samePortPlan(port, one.dataplane.kernel.get(key)!)).toBe(true);
      const failures = one.events.flatMap((event) => (event.kind === 'syncFailed' ? [String(event.error)] : []));
      expect(failures.filter((text) => text !== 'Error: The fake kernel refuses')).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

import fc from 'fast-check';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeClock } from '../../../test/fakes/fake-clock.ts';
import { FakeDataplane } from '../../../test/fakes/fake-dataplane.ts';
import { FakeServiceStore, makeNode, makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { BackgroundFailure, parseCidr, parseIp } from '../../core/index.ts';
import type { Plan, PlanDelta } from '../plan/index.ts';
import { Planner, samePortPlan } from '../plan/index.ts';
import type { Change } from './changes.ts';
import type { ProxyEvent, ProxyObserver } from './events.ts';
import { FamilyProxy, type FamilyProxyOptions } from './family-proxy.ts';

const SERVICE: Change = { kind: 'service' };
const slice = (triggerTime?: number): Change => ({ kind: 'slice', triggerTime, deleted: false });

/** A proxy of one family with everything around it faked. */
class Bench {
  readonly clock = new FakeClock();
  readonly store = new FakeServiceStore();
  readonly dataplane = new FakeDataplane();
  readonly events: ProxyEvent[] = [];
  readonly localAddresses = ['192.0.2.1'].map(parseIp);
  readonly proxy: FamilyProxy;

  constructor(observers: readonly ProxyObserver[] = [], options: Partial<FamilyProxyOptions> = {}) {
    this.proxy = new FamilyProxy({
      clock: this.clock,
      random: () => 0,
      minIntervalMs: 1_000,
      maxIntervalMs: 3_600_000,
      retry: { firstMs: 1_000, maxMs: 30_000 },
      nodeName: 'n1',
      settings: {
        detectLocal: { mode: 'NodeCIDR' },
        masqueradeBit: 14,
        masqueradeAll: false,
        nodePortAddresses: 'primary',
      },
      store: this.store,
      dataplane: this.dataplane,
      localAddresses: () => ({ all: this.localAddresses, own: this.localAddresses }),
      pauses: () => () => undefined,
      observers: [...observers, (event) => this.events.push(event)],
      ...options,
    });
  }

  put(name: string, ...endpoints: string[]): void {
    this.store.services.set(name, makeService(name));
    this.store.slicesByService.set(name, [makeSlice(name, endpoints)]);
  }

  /** Starts, waits until a request would run at once, and forgets what happened so far. */
  async settle(): Promise<void> {
    this.proxy.start();
    await this.clock.advance(5_000);
    this.events.length = 0;
    this.dataplane.calls.length = 0;
  }

  get kinds(): string[] {
    return this.events.map((event) => event.kind);
  }

  last<Kind extends ProxyEvent['kind']>(kind: Kind): Extract<ProxyEvent, { kind: Kind }> {
    return this.events.findLast((event) => event.kind === kind) as Extract<ProxyEvent, { kind: Kind }>;
  }
}

let bench: Bench;

beforeEach(() => {
  bench = new Bench();
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
  expect(bench.last('syncFinished')).toMatchObject({ family: 'IPv4', mode: 'iptables', full: true, deltaSize: 1 });
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

describe('the node', () => {
  const node = (address: string, zone = '') =>
    makeNode('n1', {
      labels: { 'topology.kubernetes.io/zone': zone },
      status: { addresses: [{ type: 'InternalIP', address }] },
    });

  beforeEach(async () => {
    bench.store.nodesByName.set('n1', node('192.0.2.1'));
    const zoned = (ip: string, zone: string) => ({ addresses: [ip], hints: { forZones: [{ name: zone }] } });
    bench.put('a/x');
    bench.store.slicesByService.set('a/x', [makeSlice('a/x', [zoned('10.0.0.1', 'a'), zoned('10.0.0.2', 'b')])]);
    await bench.settle();
  });

  it('causes a full sync when its plan changes', async () => {
    bench.store.nodesByName.set('n1', node('192.0.2.2'));
    bench.proxy.nodeChanged();
    await bench.clock.advance(0);
    expect(bench.dataplane.calls.map(({ method, node }) => [method, node.nodeIp])).toEqual([
      ['resync', parseIp('192.0.2.2')],
    ]);
    expect(bench.last('queued').reason).toBe('node');
  });

  it('causes a full sync when its zone changes, with other endpoints', async () => {
    bench.store.nodesByName.set('n1', node('192.0.2.1', 'b'));
    bench.proxy.nodeChanged();
    await bench.clock.advance(0);
    expect(bench.dataplane.kernel.get('a/x:/TCP')!.clusterEndpoints.map(({ key }) => key)).toEqual(['10.0.0.2:8080']);
  });

  it('keeps what it was when its object is deleted', async () => {
    bench.store.nodesByName.delete('n1');
    bench.proxy.nodeChanged();
    await bench.clock.advance(60_000);
    expect(bench.events).toEqual([]);
    bench.proxy.resync();
    await bench.clock.advance(0);
    expect(bench.dataplane.calls[0]!.node.nodeIp).toEqual(parseIp('192.0.2.1'));
  });

  it('causes nothing when what changed does not matter', async () => {
    bench.store.nodesByName.set('n1', makeNode('n1', { ...node('192.0.2.1'), spec: { taints: [{ key: 'any' }] } }));
    bench.proxy.nodeChanged();
    await bench.clock.advance(60_000);
    expect(bench.events).toEqual([]);
  });
});

describe('tracked flows', () => {
  it('are told of each change before it is committed, and cleaned after each commit that succeeds', async () => {
    const calls: string[] = [];
    const flows = {
      note: ({ upserted, removed, replaced = [] }: PlanDelta) =>
        void calls.push(`note +${upserted.length} -${removed.length} ~${replaced.length}`),
      clean: async ({ ports }: Plan) => void calls.push(`clean ${ports.size}`),
    };
    bench = new Bench([], { flows });
    bench.put('a/x', '10.0.0.1');
    await bench.settle();
    bench.put('a/x', '10.0.0.2');
    bench.dataplane.failNext(new Error('refused'));
    bench.proxy.touch(['a/x'], SERVICE);
    await bench.clock.advance(0);
    expect(calls).toEqual(['note +1 -0 ~0', 'clean 1', 'note +1 -0 ~1']);
    await bench.clock.advance(5_000);
    expect(calls.slice(3)).toEqual(['note +0 -0 ~0', 'clean 1']);
  });
});

it('serves external IPs only where that is allowed', async () => {
  for (const [externalIps, served] of [
    [true, 1],
    [false, 0],
  ] as const) {
    bench = new Bench([], { externalIps });
    bench.put('a/x', '10.0.0.1');
    const service = makeService('a/x');
    bench.store.services.set('a/x', { ...service, spec: { ...service.spec, externalIPs: ['203.0.113.1'] } });
    await bench.settle();
    expect(bench.dataplane.kernel.get('a/x:/TCP')!.externalIps).toHaveLength(served);
  }
});

describe('addresses that may be no Service’s', () => {
  const externalIps = () => bench.dataplane.kernel.get('a/x:/TCP')!.externalIps.length;
  const start = async (options: Partial<FamilyProxyOptions> = {}, ips = ['198.51.100.7']) => {
    bench = new Bench([], options);
    bench.put('a/x', '10.0.0.1');
    bench.store.services.set('a/x', makeService('a/x', { externalIPs: ips }));
    bench.put('a/y', '10.0.0.2');
    await bench.settle();
  };

  it('are those of the API server, as it writes them down: no more Services are planned again than have such', async () => {
    await start();
    expect(externalIps()).toBe(1);
    bench.store.slicesByService.set('default/kubernetes', [makeSlice('default/kubernetes', ['198.51.100.7'])]);
    bench.proxy.touch(['default/kubernetes'], slice());
    await bench.clock.advance(5_000);
    expect(externalIps()).toBe(0);
    expect(bench.dataplane.calls).toEqual([expect.objectContaining({ method: 'sync', upserted: ['a/x:/TCP'] })]);
    expect(bench.last('serviceProblem').problems).toEqual([
      "spec.externalIPs has 198.51.100.7, which is the API server's address",
    ]);
    expect(bench.last('syncFinished').restrictedServices).toEqual({ taken: 0, refused: 1, limit: 0 });
  });

  it('are those of any Node that is known, and no longer when it has gone', async () => {
    await start();
    const addresses = [{ type: 'ExternalIP', address: '198.51.100.7' }];
    bench.store.nodesByName.set('n2', makeNode('n2', { status: { addresses } }));
    bench.proxy.addressesChanged();
    await bench.clock.advance(5_000);
    expect(externalIps()).toBe(0);
    bench.store.nodesByName.delete('n2');
    bench.proxy.addressesChanged();
    await bench.clock.advance(5_000);
    expect(externalIps()).toBe(1);
    expect(bench.dataplane.calls.map(({ method }) => method)).toEqual(['sync', 'sync']);
  });

  it('are those this node has at the moment', async () => {
    const own: ReturnType<typeof parseIp>[] = [];
    await start({ localAddresses: () => ({ all: own, own }) });
    own.push(parseIp('198.51.100.7'));
    bench.proxy.nodeChanged();
    await bench.clock.advance(5_000);
    expect(externalIps()).toBe(0);
  });

  it('are where the agent reaches the API server, and what is not on the list of allowed ones', async () => {
    await start({ apiServer: () => parseIp('198.51.100.7') });
    expect(externalIps()).toBe(0);
    await start({ externalIpCidrs: [parseCidr('203.0.113.0/24')] }, ['198.51.100.7', '203.0.113.7']);
    expect(externalIps()).toBe(1);
  });

  it('cost nothing to look at when nothing has changed', async () => {
    await start();
    bench.proxy.nodeChanged();
    await bench.clock.advance(5_000);
    expect(bench.events).toEqual([]);
  });
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
    bench = new Bench([], { verifyIntervalMs: 30_000 });
    bench.put('a/x', '10.0.0.1');
    await bench.settle();
  });

  it('says nothing while nothing differs', async () => {
    await bench.clock.advance(90_000);
    expect(bench.dataplane.verifications).toBe(3);
    expect(bench.kinds).toEqual([]);
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
    expect(bench.kinds).toHaveLength(4);
  });

  it('that fails is reported and made again', async () => {
    bench.dataplane.failNext(new Error('No lock'));
    await bench.clock.advance(60_000);
    expect(bench.kinds).toEqual(['verifyFailed']);
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

describe('local addresses that cannot be listed', () => {
  let fails: boolean;

  beforeEach(() => {
    fails = false;
    const localAddresses = () => {
      if (fails) throw new Error('EMFILE');
      return { all: bench.localAddresses, own: bench.localAddresses };
    };
    const settings = {
      detectLocal: { mode: 'NodeCIDR' },
      masqueradeBit: 14,
      masqueradeAll: false,
      nodePortAddresses: [parseCidr('192.0.2.0/24')],
    } as const;
    bench = new Bench([], { localAddresses, settings, verifyIntervalMs: 30_000 });
    bench.put('a/x', '10.0.0.1');
  });

  const addresses = () => bench.proxy.plan.node.nodePortAddresses;

  it.each<[string, () => void]>([
    ['a check', () => {}],
    ['an event about the node', () => bench.proxy.nodeChanged()],
    ['a full sync', () => bench.proxy.resync()],
  ])('during %s end nothing and are told; the last known ones stay', async (_, happens) => {
    await bench.settle();
    fails = true;
    happens();
    await bench.clock.advance(60_000);
    expect(bench.last('workFailed')).toMatchObject({ work: 'address listing', error: new Error('EMFILE') });
    expect(bench.kinds).not.toContain('syncFailed');
    expect(addresses()).toEqual([parseIp('192.0.2.1')]);
    fails = false;
    bench.localAddresses.push(parseIp('192.0.2.7'));
    await bench.clock.advance(30_000);
    expect(addresses()).toEqual(['192.0.2.1', '192.0.2.7'].map(parseIp));
    expect(bench.dataplane.verifications).toBe(3);
  });

  it('before there are any let no sync succeed', async () => {
    fails = true;
    bench.proxy.start();
    bench.proxy.nodeChanged();
    await bench.clock.advance(500);
    expect(bench.last('syncFailed')).toMatchObject({ stage: 'plan' });
    expect(bench.dataplane.calls).toEqual([]);
    fails = false;
    await bench.clock.advance(5_000);
    expect(bench.last('syncFinished').full).toBe(true);
  });
});

it('takes a cleaning of flows that rejects for no failure of the sync, and tells it', async () => {
  const clean = () => Promise.reject(new Error('No conntrack'));
  bench = new Bench([], { flows: { note: () => {}, clean } });
  bench.put('a/x', '10.0.0.1');
  bench.proxy.start();
  await bench.clock.advance(10_000);
  expect(bench.kinds).toEqual(['started', 'queued', 'syncStarted', 'syncFinished', 'workFailed']);
  expect(bench.last('workFailed')).toMatchObject({ work: 'flow cleaning', error: new Error('No conntrack') });
});

it('is not harmed by an observer that throws', async () => {
  const warning = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  bench = new Bench([
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
      const one = new Bench();
      one.proxy.start();
      for (const { name, exists, endpoints, fails, waitMs } of steps) {
        if (fails) one.dataplane.failNext();
        one.put(name, ...endpoints);
        if (!exists) one.store.services.delete(name);
        one.proxy.touch([name], SERVICE);
        await one.clock.advance(waitMs);
      }
      await one.clock.advance(600_000);
      const fresh = new Planner({ family: 'IPv4', nodeName: 'n1', node: one.proxy.plan.node });
      await fresh.rebuild(one.store);
      expect([...one.dataplane.kernel.keys()].sort()).toEqual([...fresh.plan.ports.keys()].sort());
      for (const [key, port] of fresh.plan.ports) expect(samePortPlan(port, one.dataplane.kernel.get(key)!)).toBe(true);
      const failures = one.events.flatMap((event) => (event.kind === 'syncFailed' ? [String(event.error)] : []));
      expect(failures.filter((text) => text !== 'Error: The fake kernel refuses')).toEqual([]);
    }),
    { numRuns: 100 },
  );
});

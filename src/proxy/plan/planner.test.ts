import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { FakeServiceStore, makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { sampleNode, samplePlanner } from '../../../test/samples/sample-plan.ts';
import { formatIpPort } from '../../core/index.ts';
import type { Planner } from './planner.ts';
import { samePortPlan } from './same-plan.ts';
import type { ServicePortPlan } from './service-plan.ts';

let store: FakeServiceStore;
let planner: Planner;

beforeEach(() => {
  store = new FakeServiceStore();
  planner = samplePlanner();
});

function keys(ports: readonly ServicePortPlan[]): string[] {
  return ports.map(({ key }) => key);
}

describe('update', () => {
  it('adds, changes and removes the ports of the named Services only', async () => {
    store.put('a/x');
    store.put('a/y');
    expect(keys((await planner.update(['a/x'], store)).delta.upserted)).toEqual(['a/x:/TCP']);
    expect([...planner.plan.ports.keys()]).toEqual(['a/x:/TCP']);

    store.put('a/x', ['10.0.0.1', '10.0.0.2']);
    const changed = (await planner.update(['a/x'], store)).delta;
    expect(changed.upserted).toEqual([planner.plan.ports.get('a/x:/TCP')]);
    expect(changed.upserted[0]!.clusterEndpoints).toHaveLength(2);
    expect(changed.removed).toEqual([]);

    store.services.delete('a/x');
    const gone = (await planner.update(['a/x'], store)).delta;
    expect(keys(gone.removed)).toEqual(['a/x:/TCP']);
    expect(gone.upserted).toEqual([]);
    expect(planner.plan.ports.size).toBe(0);
  });

  it('names the port that went and the port that came when a Service changes its ports', async () => {
    store.put('a/x', [], {
      ports: [
        { name: 'p', port: 80 },
        { name: 'q', port: 81 },
      ],
    });
    await planner.update(['a/x'], store);
    store.put('a/x', [], {
      ports: [
        { name: 'q', port: 81 },
        { name: 'r', port: 82 },
      ],
    });
    const { upserted, removed } = (await planner.update(['a/x'], store)).delta;
    expect(keys(upserted)).toEqual(['a/x:r/TCP']);
    expect(keys(removed)).toEqual(['a/x:p/TCP']);
  });

  it('is empty for a change that does not matter to the kernel, yet keeps the plan fresh', async () => {
    store.put('a/x');
    await planner.update(['a/x'], store);
    const hinted = { addresses: ['10.0.0.1'], hints: { forZones: [{ name: 'elsewhere' }] } };
    store.slicesByService.set('a/x', [
      makeSlice('a/x', [hinted], { annotations: { note: 'new' } }),
      makeSlice('a/x', ['fd00::1'], { suffix: 'v6', addressType: 'IPv6' }),
    ]);
    expect((await planner.update(['a/x'], store)).delta).toEqual({ upserted: [], removed: [], replaced: [] });
    expect(planner.plan.ports.get('a/x:/TCP')!.clusterEndpoints[0]!.zoneHints).toEqual(['elsewhere']);
  });

  it('does not look at other Services, however many there are', async () => {
    for (let i = 0; i < 10_000; i++) store.put(`many/s${i}`);
    await planner.rebuild(store);
    store.put('many/s77', ['10.0.0.9']);
    store.reads = 0;
    const { delta } = await planner.update(['many/s77'], store);
    expect(delta.upserted).toHaveLength(1);
    expect(store.reads).toBe(2);
    expect(planner.plan.ports.size).toBe(10_000);
  }, 30_000);
});

it('does not ask for the endpoints of Services without an address of the family', async () => {
  const ofIpv6 = samplePlanner({ family: 'IPv6' });
  store.put('a/x');
  store.put('a/y', [], { clusterIP: 'fd00::1' });
  store.reads = 0;
  await ofIpv6.update(['a/x', 'a/y'], store);
  // Both Services, and the slices of one.
  expect(store.reads).toBe(3);
  expect([...ofIpv6.plan.ports.keys()]).toEqual(['a/y:/TCP']);
  store.put('a/x', [], { clusterIP: 'fd00::2' });
  expect(keys((await ofIpv6.update(['a/x'], store)).delta.upserted)).toEqual(['a/x:/TCP']);
  store.put('a/x');
  expect(keys((await ofIpv6.update(['a/x'], store)).delta.removed)).toEqual(['a/x:/TCP']);
});

describe('rebuild', () => {
  it('takes in every Service and drops those that are gone', async () => {
    store.put('a/x');
    store.put('a/y');
    await planner.rebuild(store);
    store.services.delete('a/x');
    store.put('a/z');
    const { upserted, removed } = (await planner.rebuild(store)).delta;
    expect(keys(upserted)).toEqual(['a/z:/TCP']);
    expect(keys(removed)).toEqual(['a/x:/TCP']);
    expect([...planner.plan.ports.keys()]).toEqual(['a/y:/TCP', 'a/z:/TCP']);
  });

  it('applies a new zone', async () => {
    const zoned = (address: string, zone: string) => ({ addresses: [address], hints: { forZones: [{ name: zone }] } });
    store.services.set('a/x', makeService('a/x'));
    store.slicesByService.set('a/x', [makeSlice('a/x', [zoned('10.0.0.1', 'a'), zoned('10.0.0.2', 'b')])]);
    await planner.rebuild(store);
    const used = () => planner.plan.ports.get('a/x:/TCP')!.clusterEndpoints.map(({ key }) => key);
    expect(used()).toEqual(['10.0.0.1:8080', '10.0.0.2:8080']);
    planner.setNode(sampleNode({ masqueradeAll: true }), 'b');
    await planner.rebuild(store);
    expect(used()).toEqual(['10.0.0.2:8080']);
    expect(planner.plan.node.masqueradeAll).toBe(true);
  });
});

describe('a Service that cannot be planned', () => {
  const broken = { ...makeService('a/bad'), spec: { clusterIP: '10.96.0.1', ports: 'eighty' as never } };

  it('is left out and reported, and the others go on', async () => {
    store.put('a/x');
    store.services.set('a/bad', broken);
    store.put('a/y');
    const { delta, problems } = await planner.rebuild(store);
    expect(keys(delta.upserted)).toEqual(['a/x:/TCP', 'a/y:/TCP']);
    expect(problems).toEqual([
      { serviceName: 'a/bad', problems: [expect.stringMatching(/^The Service cannot be planned: /)] },
    ]);
  });

  it('keeps what was planned for it before, until it is mended', async () => {
    store.put('a/bad');
    await planner.update(['a/bad'], store);
    store.services.set('a/bad', broken);
    expect((await planner.update(['a/bad'], store)).delta).toEqual({ upserted: [], removed: [], replaced: [] });
    expect([...planner.plan.ports.keys()]).toEqual(['a/bad:/TCP']);
    store.put('a/bad', ['10.0.0.2']);
    const mended = await planner.update(['a/bad'], store);
    expect(keys(mended.delta.upserted)).toEqual(['a/bad:/TCP']);
    expect(mended.problems).toEqual([{ serviceName: 'a/bad', problems: [] }]);
  });
});

it('reports the problems of a Service when they change, not each time', async () => {
  const texts = async () => (await planner.update(['a/x'], store)).problems.map(({ problems }) => problems.length);
  store.put('a/x', ['10.0.0.1'], { externalIPs: ['nonsense'] });
  expect(await texts()).toEqual([1]);
  expect(await texts()).toEqual([]);
  store.put('a/x');
  expect(await texts()).toEqual([0]);
  store.put('a/x', ['10.0.0.1'], { externalIPs: ['nonsense'] });
  expect(await texts()).toEqual([1]);
  store.services.delete('a/x');
  expect(await texts()).toEqual([0]);
  expect(await texts()).toEqual([]);
});

it('counts the ports that no local endpoint serves, each while it lasts', async () => {
  store.put('a/internal', ['10.0.0.1'], { internalTrafficPolicy: 'Local' });
  store.put('a/external', ['10.0.0.1'], { externalTrafficPolicy: 'Local', ports: [{ port: 80, nodePort: 30080 }] });
  store.put('a/nobody', [], { internalTrafficPolicy: 'Local' });
  await planner.rebuild(store);
  expect(planner.noLocalEndpoints).toEqual({ internal: 1, external: 1 });
  await planner.rebuild(store);
  expect(planner.noLocalEndpoints).toEqual({ internal: 1, external: 1 });
  store.services.delete('a/internal');
  store.put('a/external', ['10.0.0.1']);
  await planner.rebuild(store);
  expect(planner.noLocalEndpoints).toEqual({ internal: 0, external: 0 });
});

it('does not count a port under policy Local that nobody can reach from outside yet', async () => {
  // kube-proxy counts it. Nothing is dropped here: the load balancer has no address, and there is no NodePort.
  const waiting = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', ports: [{ port: 80 }] } as const;
  store.put('a/waiting', ['10.0.0.1'], waiting);
  await planner.rebuild(store);
  expect(planner.noLocalEndpoints).toEqual({ internal: 0, external: 0 });
});

it('arrives at the plan of a fresh rebuild whatever came before, and its deltas add up', async () => {
  const step = fc.record({
    name: fc.constantFrom('a/x', 'a/y', 'b/x'),
    exists: fc.boolean(),
    endpoints: fc.uniqueArray(fc.constantFrom('10.0.0.1', '10.0.0.2', '10.0.0.3', 'rubbish')),
    ports: fc.uniqueArray(fc.constantFrom('', 'p', 'q'), { minLength: 1 }),
    policy: fc.constantFrom('Cluster', 'Local'),
    clusterIp: fc.constantFrom('10.96.0.1', '10.96.0.2', '10.96.0.3'),
    externalIPs: fc.uniqueArray(fc.constantFrom('203.0.113.1', '203.0.113.2', '10.96.0.1')),
    vips: fc.uniqueArray(fc.constantFrom('203.0.113.1', '203.0.113.2')),
    nodePort: fc.constantFrom(0, 30_080, 30_081),
    year: fc.constantFrom(2020, 2021, undefined),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const ours = new FakeServiceStore();
      const incremental = samplePlanner();
      const kernel = new Map<string, ServicePortPlan>();
      for (const { name, exists, endpoints, ports, policy, clusterIp, externalIPs, vips, nodePort, year } of steps) {
        const spec = {
          internalTrafficPolicy: policy,
          externalTrafficPolicy: policy,
          clusterIP: clusterIp,
          externalIPs,
          ports: ports.map((port, index) => ({ name: port, port: 80 + index, nodePort: nodePort && nodePort + index })),
        } as const;
        const age = year === undefined ? {} : { creationTimestamp: `${year}-01-01T00:00:00Z` };
        if (exists) ours.services.set(name, makeService(name, spec, { vips, ...age }));
        else ours.services.delete(name);
        ours.slicesByService.set(name, [
          makeSlice(name, endpoints, { ports: [{ port: 8080 }, { name: 'p', port: 8081 }] }),
        ]);
        const { upserted, removed } = (await incremental.update([name], ours)).delta;
        for (const port of upserted) kernel.set(port.key, port);
        for (const port of removed) kernel.delete(port.key);
      }
      const fresh = samplePlanner();
      await fresh.rebuild(ours);
      const byKey = (ports: ReadonlyMap<string, ServicePortPlan>) => [...ports].sort(([a], [b]) => (a < b ? -1 : 1));
      expect(byKey(incremental.plan.ports)).toEqual(byKey(fresh.plan.ports));
      expect(incremental.noLocalEndpoints).toEqual(fresh.noLocalEndpoints);
      expect([...kernel.keys()].sort()).toEqual([...fresh.plan.ports.keys()].sort());
      for (const [key, port] of kernel) expect(samePortPlan(port, fresh.plan.ports.get(key)!)).toBe(true);
      expect(incremental.restrictedServices).toEqual(fresh.restrictedServices);
      const destinations = [...fresh.plan.ports.values()].flatMap((port) => [
        ...[port.clusterIp, ...port.externalIps, ...port.loadBalancerVips].map((ip) => formatIpPort(ip, port.port)),
        ...(port.nodePort === 0 ? [] : [String(port.nodePort)]),
      ]);
      expect(destinations).toHaveLength(new Set(destinations).size);
    }),
  );
});

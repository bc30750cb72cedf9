import { beforeEach, describe, expect, it } from 'vitest';
import { formatIp } from '../../src/core/index.ts';
import type { PlanDelta, Planner, ServicePortPlan } from '../../src/proxy/index.ts';
import { sampleNode, samplePlanner } from '../samples/sample-plan.ts';
import { testDataplane } from './dataplane-suite.ts';
import { FakeDataplane } from './fake-dataplane.ts';
import { FakeServiceStore } from './service-objects.ts';

let store: FakeServiceStore;
let planner: Planner;
let dataplane: FakeDataplane;

async function put(name: string, endpoint: string): Promise<PlanDelta> {
  store.put(name, [endpoint]);
  return (await planner.update([name], store)).delta;
}

async function drop(name: string): Promise<PlanDelta> {
  store.services.delete(name);
  return (await planner.update([name], store)).delta;
}

beforeEach(async () => {
  store = new FakeServiceStore();
  planner = samplePlanner();
  dataplane = new FakeDataplane();
  await put('a/x', '10.0.0.1');
  await dataplane.resync(planner.plan);
});

it('follows honest deltas', async () => {
  await dataplane.sync(planner.plan, await put('a/y', '10.0.0.2'));
  await dataplane.sync(planner.plan, await drop('a/x'));
  expect([...dataplane.kernel.keys()]).toEqual(['a/y:/TCP']);
  expect(dataplane.calls.map(({ method, upserted, removed }) => [method, upserted, removed])).toEqual([
    ['resync', [], []],
    ['sync', ['a/y:/TCP'], []],
    ['sync', [], ['a/x:/TCP']],
  ]);
});

describe('refuses', () => {
  const EMPTY: PlanDelta = { upserted: [], removed: [] };
  const sync = (delta: PlanDelta) => dataplane.sync(planner.plan, delta);

  it('a delta that says too little', async () => {
    await put('a/y', '10.0.0.2');
    await expect(sync(EMPTY)).rejects.toThrow('"a/y:/TCP" differs from the last commit');
    await drop('a/y');
    await drop('a/x');
    await expect(sync(EMPTY)).rejects.toThrow('"a/x:/TCP" is gone from the plan');
  });

  it('a delta that says what is not so', async () => {
    const port = planner.plan.ports.get('a/x:/TCP')!;
    await expect(sync({ upserted: [], removed: [port] })).rejects.toThrow(
      '"a/x:/TCP" is removed but still in the plan',
    );
    await expect(sync({ upserted: [{ ...port, key: 'a/z:/TCP' }], removed: [] })).rejects.toThrow('not in the plan');
    await expect(sync({ upserted: [], removed: [{ ...port, key: 'a/z:/TCP' }] })).rejects.toThrow('never committed');
  });

  it('a sync at the beginning, and after a failure', async () => {
    await expect(new FakeDataplane().sync(planner.plan, EMPTY)).rejects.toThrow('only resync will do');
    dataplane.failNext();
    await expect(sync(EMPTY)).rejects.toThrow('The fake kernel refuses');
    await expect(sync(EMPTY)).rejects.toThrow('only resync will do');
    await dataplane.resync(planner.plan);
    await sync(EMPTY);
  });

  it('calls that overlap', async () => {
    const release = dataplane.hold();
    const first = sync(EMPTY);
    await expect(sync(EMPTY)).rejects.toThrow('two calls overlap');
    release();
    await first;
  });

  it('a new node plan without a resync', async () => {
    planner.setNode(sampleNode({ masqueradeAll: true }), '');
    await expect(sync(EMPTY)).rejects.toThrow('the node plan changed');
  });
});

testDataplane({
  isAtomic: false,
  make(family) {
    const kernel = new Map<string, ServicePortPlan>();
    const foreign: Record<string, string> = {};
    let refused = new Set<string>();
    let writes = 0;
    let dataplane: FakeDataplane | undefined;
    return {
      start() {
        writes += dataplane?.writes ?? 0;
        dataplane = new FakeDataplane(family, kernel);
        dataplane.refuse = ({ clusterIp }) => (refused.has(formatIp(clusterIp)) ? 'not this one' : undefined);
        return dataplane;
      },
      dump: () => ({ ...foreign, ...Object.fromEntries(kernel) }),
      writes: () => writes + dataplane!.writes,
      damage() {
        const [key] = kernel.keys();
        kernel.delete(key!);
        dataplane!.drift = [{ object: key!, difference: 'missing' }];
      },
      addForeign() {
        foreign.somebody = 'else';
      },
      refuse(clusterIps) {
        refused = new Set(clusterIps.map(formatIp));
      },
    };
  },
});

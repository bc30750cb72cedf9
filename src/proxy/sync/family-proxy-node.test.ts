import { beforeEach, describe, expect, it } from 'vitest';
import { FamilyBench } from '../../../test/fakes/family-bench.ts';
import { makeNode, makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { parseCidr, parseIp } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import type { Change } from './changes.ts';
import type { FamilyProxyOptions } from './family-proxy-options.ts';

const slice = (triggerTime?: number): Change => ({ kind: 'slice', triggerTime, deleted: false });

let bench: FamilyBench;

beforeEach(() => {
  bench = new FamilyBench();
});

describe('the node', () => {
  const node = (address: string, zone = '') =>
    makeNode('n1', {
      labels: { 'topology.kubernetes.io/zone': zone },
      status: { addresses: [{ type: 'InternalIP', address }] },
    });

  const without = (object: Node): Node => ({ ...object, status: { addresses: [] } });

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

  it.each([
    ['is deleted', () => void bench.store.nodesByName.delete('n1')],
    ['has no address for a while', () => void bench.store.nodesByName.set('n1', without(node('192.0.2.1')))],
  ])('keeps what it was when its object %s', async (_, change) => {
    change();
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

it('serves external IPs only where that is allowed', async () => {
  for (const [externalIps, served] of [
    [true, 1],
    [false, 0],
  ] as const) {
    bench = new FamilyBench([], { externalIps });
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
    bench = new FamilyBench([], options);
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

  it('are no load-balancer VIPs that come to an interface, also once the Node has gone', async () => {
    const own = [parseIp('192.0.2.1')];
    bench = new FamilyBench([], { localAddresses: () => ({ all: own, own }) });
    const addresses = [{ type: 'InternalIP', address: '192.0.2.1' }];
    bench.store.nodesByName.set('n1', makeNode('n1', { status: { addresses } }));
    bench.store.services.set('a/x', makeService('a/x', {}, { vips: ['192.0.2.7', '192.0.2.1'] }));
    await bench.settle();
    const vips = () => bench.proxy.plan.ports.get('a/x:/TCP')!.loadBalancerVips;
    expect(vips()).toEqual([parseIp('192.0.2.7')]);
    own.push(parseIp('192.0.2.7'));
    bench.proxy.nodeChanged();
    await bench.clock.advance(5_000);
    expect(vips()).toEqual([parseIp('192.0.2.7')]);
    bench.store.nodesByName.delete('n1');
    bench.proxy.nodeChanged();
    bench.proxy.resync();
    await bench.clock.advance(5_000);
    expect(vips()).toEqual([parseIp('192.0.2.7')]);
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
    bench = new FamilyBench([], { localAddresses, settings, verifyIntervalMs: 30_000 });
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

import { beforeEach, describe, expect, it } from 'vitest';
import { FakeServiceStore, makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { samplePlanner } from '../../../test/samples/sample-plan.ts';
import { formatIp, parseIp, yielder } from '../../core/index.ts';
import { AddressRules } from './bounds/address-rules.ts';
import { LIMITS } from './bounds/limits.ts';
import type { Planner } from './planner.ts';
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

describe('a destination that two Services want', () => {
  const external = (ip: string, spec: object = {}) => ({ externalIPs: [ip], ...spec });
  const addresses = (key: string) => {
    const port = planner.plan.ports.get(`${key}:/TCP`);
    return port && { externalIps: port.externalIps.map(formatIp), vips: port.loadBalancerVips.map(formatIp) };
  };
  const aged = (name: string, year: number, spec: object = {}) => {
    store.put(name);
    store.services.set(name, makeService(name, spec, { creationTimestamp: `${year}-01-01T00:00:00Z` }));
  };
  const withVip = (name: string, ip: string, spec: object = {}) =>
    store.services.set(name, makeService(name, spec, { vips: [ip] }));

  it('is its ClusterIP before it is an external IP of another, whatever the names', async () => {
    store.put('z/victim', ['10.0.0.1'], { clusterIP: '10.96.0.7' });
    store.put('a/thief', ['10.0.0.2'], external('10.96.0.7'));
    const { problems } = await planner.rebuild(store);
    expect(addresses('a/thief')).toEqual({ externalIps: [], vips: [] });
    expect(problems).toEqual([
      {
        serviceName: 'a/thief',
        problems: ['External IP 10.96.0.7 is not served: 10.96.0.7:80/TCP is the ClusterIP of Service "z/victim"'],
      },
    ]);
    expect(planner.restrictedServices).toEqual({ taken: 1, refused: 0, limit: 0 });
  });

  it('goes to the next when its owner goes, in the same update, and back when it returns', async () => {
    aged('b/second', 2021, external('203.0.113.1'));
    aged('a/third', 2022, external('203.0.113.1'));
    aged('c/first', 2020, external('203.0.113.1'));
    await planner.rebuild(store);
    const owner = () => ['a/third', 'b/second', 'c/first'].filter((name) => addresses(name)?.externalIps.length);
    expect(owner()).toEqual(['c/first']);

    const service = store.services.get('c/first')!;
    store.services.delete('c/first');
    const gone = await planner.update(['c/first'], store);
    expect(keys(gone.delta.removed)).toEqual(['c/first:/TCP']);
    expect(keys(gone.delta.upserted)).toEqual(['b/second:/TCP']);
    expect(owner()).toEqual(['b/second']);
    expect(gone.problems.map(({ serviceName, problems }) => [serviceName, problems])).toEqual([
      ['b/second', []],
      [
        'a/third',
        ['External IP 203.0.113.1 is not served: 203.0.113.1:80/TCP is an external IP of Service "b/second"'],
      ],
    ]);

    store.services.set('c/first', service);
    const back = await planner.update(['c/first'], store);
    expect(keys(back.delta.upserted).sort()).toEqual(['b/second:/TCP', 'c/first:/TCP']);
    expect(owner()).toEqual(['c/first']);
  });

  it('is a load-balancer VIP before it is an external IP, of another Service or of the same', async () => {
    store.put('a/x', ['10.0.0.1'], external('198.51.100.9'));
    withVip('b/lb', '198.51.100.9', external('198.51.100.9', { loadBalancerSourceRanges: ['192.0.2.0/24'] }));
    await planner.rebuild(store);
    expect(addresses('a/x')).toEqual({ externalIps: [], vips: [] });
    expect(addresses('b/lb')).toEqual({ externalIps: [], vips: ['198.51.100.9'] });
    expect(planner.plan.ports.get('b/lb:/TCP')!.sourceRanges).toHaveLength(1);
  });

  it('is nobody else’s while its owner withholds it, because its source ranges cannot be read', async () => {
    store.put('a/x', ['10.0.0.1'], external('198.51.100.9'));
    withVip('b/lb', '198.51.100.9', external('198.51.100.9', { loadBalancerSourceRanges: ['nonsense'] }));
    await planner.rebuild(store);
    expect(addresses('a/x')).toEqual({ externalIps: [], vips: [] });
    expect(addresses('b/lb')).toEqual({ externalIps: [], vips: [] });
  });

  it('is one of its port and protocol alone', async () => {
    store.put('a/x', ['10.0.0.1'], external('203.0.113.1'));
    store.put('b/y', ['10.0.0.1'], external('203.0.113.1', { ports: [{ port: 81 }] }));
    store.put('c/z', ['10.0.0.1'], external('203.0.113.1', { ports: [{ port: 80, protocol: 'UDP' }] }));
    const { problems } = await planner.rebuild(store);
    expect(problems).toEqual([]);
  });

  it('may be a NodePort, and a ClusterIP too: its Service is not served then', async () => {
    const spec = { clusterIP: '10.96.0.7', ports: [{ port: 80, nodePort: 30_080 }] };
    aged('a/young', 2022, spec);
    aged('b/old', 2020, spec);
    aged('c/other', 2021, { ports: [{ port: 80, nodePort: 30_080 }] });
    const { problems } = await planner.rebuild(store);
    expect([...planner.plan.ports.keys()]).toEqual(['b/old:/TCP', 'c/other:/TCP']);
    expect(planner.plan.ports.get('c/other:/TCP')!.nodePort).toBe(0);
    expect(problems.flatMap(({ problems: texts }) => texts)).toEqual([
      'Port a/young is not served: 10.96.0.7:80/TCP is the ClusterIP of Service "b/old"',
      'NodePort 30080 is not served: node port 30080/TCP is the NodePort of Service "b/old"',
    ]);
  });

  it('takes the policy for external traffic with it when it was the last one', async () => {
    store.put('a/x', ['10.0.0.1'], external('203.0.113.1'));
    store.put('b/y', ['10.0.0.1'], external('203.0.113.1', { externalTrafficPolicy: 'Local' }));
    await planner.rebuild(store);
    expect(planner.plan.ports.get('b/y:/TCP')).toMatchObject({ externalPolicy: 'Cluster', externalVerdict: 'forward' });
  });
});

describe('what no Service may have', () => {
  const rules = (own: string[]) =>
    new AddressRules({
      serviceCidrs: [],
      nodes: [],
      nodeIps: [],
      ownAddresses: own.map(parseIp),
      apiServer: undefined,
      apiService: undefined,
      apiSlices: [],
      externalIpCidrs: [],
    });
  const vips = ['192.0.2.1', '198.51.100.1'];

  it('is left out of the plan, so that no mode makes it an address of the node, and told', async () => {
    store.services.set('a/x', makeService('a/x', { externalIPs: ['192.0.2.1', '203.0.113.1'] }, { vips }));
    planner.setAddressRules(rules(['192.0.2.1']));
    const { problems } = await planner.rebuild(store);
    const port = planner.plan.ports.get('a/x:/TCP')!;
    expect([...port.externalIps, ...port.loadBalancerVips].map(formatIp)).toEqual(['203.0.113.1', '198.51.100.1']);
    expect(problems[0]!.problems).toEqual([
      'status.loadBalancer.ingress has 192.0.2.1, which is an address of this node',
      'spec.externalIPs has 192.0.2.1, which is an address of this node',
    ]);
    expect(planner.restrictedServices).toEqual({ taken: 0, refused: 1, limit: 0 });
  });

  it('is looked at again in the Services with such addresses alone when the rules change', async () => {
    store.services.set('a/x', makeService('a/x', {}, { vips }));
    store.put('a/y', ['10.0.0.1'], { externalIPs: ['192.0.2.1'] });
    store.put('a/z');
    await planner.rebuild(store);
    for (const [own, vips] of [
      [['192.0.2.1'], 1],
      [['192.0.2.9'], 2],
    ] as const) {
      planner.setAddressRules(rules([...own]));
      const names = [...planner.ruledServiceNames()];
      expect(names).toEqual(['a/x', 'a/y']);
      await planner.update(names, store);
      expect(planner.plan.ports.get('a/x:/TCP')!.loadBalancerVips).toHaveLength(vips);
    }
    expect(planner.restrictedServices).toMatchObject({ refused: 0 });
  });

  it('takes a Service out of the plan whose ClusterIP becomes an address of the node, and puts it back', async () => {
    store.services.set('a/x', makeService('a/x', { clusterIP: '192.0.2.1' }));
    store.put('a/y');
    await planner.rebuild(store);
    for (const [own, texts, ports] of [
      [
        '192.0.2.1',
        ['spec.clusterIPs has 192.0.2.1, which is an address of this node; nothing of the Service is served'],
        1,
      ],
      ['192.0.2.9', [], 2],
    ] as const) {
      planner.setAddressRules(rules([own]));
      const names = [...planner.ruledServiceNames()];
      expect(names).toEqual(['a/x']);
      const { problems } = await planner.update(names, store);
      expect(problems).toEqual([{ serviceName: 'a/x', problems: texts }]);
      expect(planner.plan.ports.size).toBe(ports);
      expect(planner.restrictedServices).toMatchObject({ refused: texts.length });
    }
  });
});

describe('hostile objects', () => {
  const numbers = (count: number) => Array.from({ length: count }, (_, n) => n);
  const ips = (count: number) => numbers(count).map((n) => `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
  const slicePorts = (count: number) => numbers(count).map((n) => ({ name: `p${n}`, port: 1000 + n }));
  const elapsedMs = async (work: () => Promise<unknown>) => {
    const began = performance.now();
    await work();
    return performance.now() - began;
  };

  // 1,000 x 1,500 took 27 s and 443 MiB, 1,000 x 20,000 ended the process.
  it.each([1_500, 20_000])('1,000 addresses x %i ports are as dear as the ports of the Service', async (count) => {
    store.services.set('a/x', makeService('a/x', { ports: [{ name: 'p7', port: 80 }] }));
    store.slicesByService.set('a/x', [makeSlice('a/x', ips(1_000), { ports: slicePorts(count) })]);
    expect(await elapsedMs(() => planner.rebuild(store))).toBeLessThan(2_000);
    expect(planner.plan.ports.get('a/x:p7/TCP')!.clusterEndpoints).toHaveLength(1_000);
    expect(planner.restrictedServices.limit).toBe(0);
  });

  it.each<[string, object, readonly [addresses: number, ports: number]]>([
    ['10,000 ports', { ports: slicePorts(10_000) }, [1, 10_000]],
    ['1,500 ports with 1,000 endpoints each', { ports: slicePorts(1_500) }, [1_000, 1_500]],
    ['20,000 external IPs', { externalIPs: ips(20_000), ports: slicePorts(1) }, [10, 1]],
    ['20,000 external IPs on 1,000 ports', { externalIPs: ips(20_000), ports: slicePorts(1_000) }, [10, 1_000]],
    ['a million endpoints', { ports: slicePorts(1) }, [1_000_000, 1]],
  ])('%s are cut to what a Service may have, and told', async (_, spec, [addresses, ports]) => {
    store.services.set('a/x', makeService('a/x', spec));
    const all = ips(addresses);
    const slices = numbers(Math.ceil(addresses / 1_000)).map((n) =>
      makeSlice('a/x', all.slice(n * 1_000, (n + 1) * 1_000), { suffix: `s${n}`, ports: slicePorts(ports) }),
    );
    store.slicesByService.set('a/x', slices);
    expect(await elapsedMs(() => planner.rebuild(store))).toBeLessThan(4_000);
    const planned = [...planner.plan.ports.values()];
    const sum = (count: (port: ServicePortPlan) => number) => planned.reduce((total, port) => total + count(port), 0);
    const destinations = (port: ServicePortPlan) => 1 + port.externalIps.length + port.loadBalancerVips.length;
    expect(sum((port) => port.clusterEndpoints.length)).toBeLessThanOrEqual(LIMITS.endpoints);
    expect(sum(destinations)).toBeLessThanOrEqual(LIMITS.destinations);
    expect(sum((port) => destinations(port) * port.clusterEndpoints.length)).toBeLessThanOrEqual(
      LIMITS.endpointElements,
    );
    expect(planner.restrictedServices.limit).toBe(1);
  });

  it('leaves a Service of 5,000 endpoints x 3 ports whole', async () => {
    store.services.set('a/x', makeService('a/x', { ports: slicePorts(3) }));
    store.slicesByService.set('a/x', [makeSlice('a/x', ips(5_000), { ports: slicePorts(3) })]);
    await planner.rebuild(store);
    expect([...planner.plan.ports.values()].map((port) => port.clusterEndpoints.length)).toEqual([5_000, 5_000, 5_000]);
    expect(planner.restrictedServices.limit).toBe(0);
  });

  it('never lets everybody in because a list of source ranges was cut', async () => {
    const ranges = numbers(9_000).map((n) => (n < 8_500 ? `2001:db8:${n.toString(16)}::/48` : `192.0.2.${n % 256}/32`));
    store.services.set('a/x', makeService('a/x', { loadBalancerSourceRanges: ranges }, { vips: ['198.51.100.1'] }));
    await planner.rebuild(store);
    expect(planner.plan.ports.get('a/x:/TCP')!.loadBalancerVips).toEqual([]);
  });

  it('refuses endpoints that are no pods', async () => {
    store.put('a/x', ['127.0.0.1', '169.254.169.254', '224.0.0.1', '0.0.0.0', '10.0.0.1']);
    const { problems } = await planner.rebuild(store);
    expect(planner.plan.ports.get('a/x:/TCP')!.clusterEndpoints.map(({ key }) => key)).toEqual(['10.0.0.1:8080']);
    expect(problems[0]!.problems).toEqual([
      'EndpointSlice "x-a" has "127.0.0.1", which is a loopback address',
      'EndpointSlice "x-a" has "169.254.169.254", which is a link-local address',
      'EndpointSlice "x-a" has "224.0.0.1", which is a multicast address',
      'EndpointSlice "x-a" has "0.0.0.0", which is no address of a host',
    ]);
  });

  it('takes from the largest when all Services together want more than a node holds, and gives back', async () => {
    planner = samplePlanner({ endpointsOfNode: 1_000 });
    store.put('a/small', ips(50));
    store.put('b/large', ips(800));
    await planner.rebuild(store);
    const counts = () => [...planner.plan.ports.values()].map((port) => port.clusterEndpoints.length);
    expect(counts()).toEqual([50, 800]);
    store.put('c/larger', ips(900));
    const { delta } = await planner.update(['c/larger'], store);
    expect(delta.upserted.map(({ key }) => key).sort()).toEqual(['b/large:/TCP', 'c/larger:/TCP']);
    expect(counts()).toEqual([50, 312, 312]);
    expect(planner.restrictedServices.limit).toBe(2);
    store.services.delete('c/larger');
    await planner.update(['c/larger'], store);
    expect(counts()).toEqual([50, 800]);
    expect(planner.restrictedServices.limit).toBe(0);
  });

  it('gives the event loop back between the Services of one update', async () => {
    for (const n of numbers(300)) store.put(`a/s${n}`, ips(200));
    let others = 0;
    const timer = setInterval(() => others++, 1);
    planner = samplePlanner({ pauses: () => yielder(1) });
    await planner.rebuild(store);
    clearInterval(timer);
    expect(others).toBeGreaterThan(2);
  });

  it('gives it back within one Service, and plans that as it was at the beginning', async () => {
    store.put('a/x', ips(2000));
    let pauses = 0;
    const rest = async () => {
      if (++pauses === 100) store.put('a/x', ['10.9.9.9']);
    };
    planner = samplePlanner({ pauses: () => rest });
    await planner.rebuild(store);
    expect(pauses).toBeGreaterThan(150);
    expect([...planner.plan.ports.values()][0]?.clusterEndpoints).toHaveLength(2000);
  });
});

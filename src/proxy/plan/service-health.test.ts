import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FakeServiceStore, makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { samplePlanner } from '../../../test/samples/sample-plan.ts';
import { atOnce, type IpFamily } from '../../core/index.ts';
import type { ServiceSpec, SliceEndpoint } from '../../kube/index.ts';
import { planService } from './plan.ts';

const NAME = 'shop/web';
/** The load balancer has not been given an address yet. */
const SPEC: Partial<ServiceSpec> = {
  type: 'LoadBalancer',
  externalTrafficPolicy: 'Local',
  healthCheckNodePort: 30999,
  ports: [
    { name: 'http', port: 80 },
    { name: 'https', port: 443 },
  ],
};
const PORTS = [
  { name: 'http', port: 8080 },
  { name: 'https', port: 8443 },
];

const on = (nodeName: string, address: string, conditions: SliceEndpoint['conditions'] = {}): SliceEndpoint => ({
  addresses: [address],
  nodeName,
  ...(conditions && { conditions }),
});

function check(spec: Partial<ServiceSpec>, endpoints: SliceEndpoint[], family: IpFamily = 'IPv4') {
  const slice = makeSlice(NAME, endpoints, { ports: PORTS, addressType: family });
  return atOnce(planService(makeService(NAME, spec), [slice], { family, nodeName: 'n1', zone: 'z1' })).healthCheck;
}

it.each<[string, SliceEndpoint[], number]>([
  ['no endpoint', [], 0],
  ['one, behind both ports', [on('n1', '10.0.0.1')], 1],
  ['two here and one elsewhere', [on('n1', '10.0.0.1'), on('n2', '10.0.0.2'), on('n1', '10.0.0.3')], 2],
  ['only elsewhere', [on('n2', '10.0.0.2')], 0],
  ['an unready one', [on('n1', '10.0.0.1', { ready: false })], 0],
  [
    'only one that terminates and still serves',
    [on('n1', '10.0.0.1', { ready: false, serving: true, terminating: true })],
    0,
  ],
  [
    'one meant for another zone',
    [{ ...on('n1', '10.0.0.1'), hints: { forZones: [{ name: 'z2' }], forNodes: [{ name: 'n2' }] } }],
    1,
  ],
])('counts the addresses of ready endpoints here: %s', (_, endpoints, localEndpoints) => {
  expect(check(SPEC, endpoints)).toEqual({ serviceName: NAME, port: 30999, localEndpoints });
});

it('adds up the endpoints of the ports, each address once', () => {
  const slices = [
    makeSlice(NAME, [on('n1', '10.0.0.1'), on('n1', '10.0.0.2')], { ports: [PORTS[0]!], suffix: 'a' }),
    makeSlice(NAME, [on('n1', '10.0.0.2'), on('n1', '10.0.0.3')], { ports: [PORTS[1]!], suffix: 'b' }),
    makeSlice(NAME, [on('n1', '10.0.0.4')], { ports: [{ name: 'unknown', port: 1 }], suffix: 'c' }),
  ];
  const plan = atOnce(planService(makeService(NAME, SPEC), slices, { family: 'IPv4', nodeName: 'n1', zone: '' }));
  expect(plan.healthCheck?.localEndpoints).toBe(3);
});

it('does not count endpoints whose port no port of the Service asks for', () => {
  // kube-proxy counts them and answers 200, while the NodePort refuses: there is nobody it could lead to.
  const slice = makeSlice(NAME, [on('n1', '10.0.0.1')], { ports: [{ name: 'unknown', port: 8080 }] });
  const spec = { ...SPEC, ports: [{ name: 'http', port: 80, nodePort: 30080 }] };
  const plan = atOnce(planService(makeService(NAME, spec), [slice], { family: 'IPv4', nodeName: 'n1', zone: '' }));
  expect(plan.healthCheck?.localEndpoints).toBe(0);
  expect(plan.ports.map(({ externalVerdict }) => externalVerdict)).toEqual(['reject']);
});

it('never exceeds the number of endpoints and counts exactly the ready local ones', () => {
  const endpoint = fc.record({ last: fc.integer({ min: 1, max: 20 }), here: fc.boolean(), ready: fc.boolean() });
  fc.assert(
    fc.property(fc.uniqueArray(endpoint, { selector: ({ last }) => last }), (list) => {
      const endpoints = list.map(({ last, here, ready }) => on(here ? 'n1' : 'n2', `10.0.0.${last}`, { ready }));
      expect(check(SPEC, endpoints)?.localEndpoints).toBe(list.filter(({ here, ready }) => here && ready).length);
    }),
  );
});

it.each<[string, Partial<ServiceSpec>]>([
  ['policy Cluster', { ...SPEC, externalTrafficPolicy: 'Cluster' }],
  ['type NodePort', { ...SPEC, type: 'NodePort' }],
  ['no port number', { ...SPEC, healthCheckNodePort: 0 }],
])('there is none with %s', (_, spec) => {
  expect(check(spec, [on('n1', '10.0.0.1')])).toBeUndefined();
});

it('there is one in the families the Service has a ClusterIP of', () => {
  const dual = { ...SPEC, clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'] };
  expect(check(dual, [on('n1', 'fd01::1')], 'IPv6')?.localEndpoints).toBe(1);
  expect(check(SPEC, [on('n1', 'fd01::1')], 'IPv6')).toBeUndefined();
});

describe('the planner', () => {
  it('keeps the health checks of all Services, and forgets those that are gone', async () => {
    const store = new FakeServiceStore();
    const planner = samplePlanner();
    store.services.set(NAME, makeService(NAME, SPEC));
    store.services.set('shop/other', makeService('shop/other'));
    await planner.rebuild(store);
    expect([...planner.healthChecks]).toEqual([[NAME, { serviceName: NAME, port: 30999, localEndpoints: 0 }]]);

    store.slicesByService.set(NAME, [makeSlice(NAME, [on('n1', '10.0.0.1')], { ports: PORTS })]);
    await planner.update([NAME], store);
    expect(planner.healthChecks.get(NAME)?.localEndpoints).toBe(1);

    // A Service of a shape nobody foresaw keeps what it had.
    store.services.set(NAME, { ...makeService(NAME), spec: null } as never);
    await planner.update([NAME], store);
    expect(planner.healthChecks.get(NAME)?.localEndpoints).toBe(1);

    store.services.delete(NAME);
    await planner.update([NAME], store);
    expect([...planner.healthChecks]).toEqual([]);
  });
});

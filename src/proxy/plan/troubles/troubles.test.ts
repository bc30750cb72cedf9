import { describe, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../../../test/fakes/service-objects.ts';
import { atOnce } from '../../../core/index.ts';
import type { EndpointSlice, ServiceSpec } from '../../../kube/index.ts';
import { planService } from '../plan.ts';
import { troublesOf } from './troubles.ts';

/** The troubles of a Service with two endpoints on other nodes, seen from node n1 in zone a. */
function troubles(spec: Partial<ServiceSpec>, change: (slice: EndpointSlice) => object = (slice) => slice, zone = 'a') {
  const slice = makeSlice('shop/web', ['10.244.2.1', '10.244.3.1']);
  const changed = { ...slice, ...change(slice) } as EndpointSlice;
  const context = { family: 'IPv4', nodeName: 'n1', zone } as const;
  const { ports } = atOnce(
    planService(makeService('shop/web', { clusterIP: '10.96.0.1', ...spec }), [changed], context),
  );
  return ports.flatMap((port) => troublesOf(port, context));
}

const hinted =
  (...zones: (string | undefined)[]) =>
  (slice: EndpointSlice) => ({
    endpoints: slice.endpoints!.map((endpoint, index) => {
      const name = zones[index];
      return { ...endpoint, ...(name !== undefined && { hints: { forZones: [{ name }] } }) };
    }),
  });

describe('troubles of a Service port', () => {
  it('are none for one that is served', () => {
    expect(troubles({})).toEqual([]);
    expect(troubles({}, hinted('a', 'b'))).toEqual([]);
  });

  it('are told where policy Local leaves nobody to answer, unless a load balancer knows', () => {
    expect(troubles({ internalTrafficPolicy: 'Local' })).toEqual([
      { cause: 'no-local-endpoints', text: expect.stringContaining('Connections to the ClusterIP from this node') },
    ]);
    const external = { type: 'NodePort', externalTrafficPolicy: 'Local' } as const;
    const ports = [{ port: 80, nodePort: 30080 }];
    expect(troubles({ ...external, ports })).toEqual([
      { cause: 'no-local-endpoints', text: expect.stringContaining('from outside') },
    ]);
    const balanced = { ...external, type: 'LoadBalancer', healthCheckNodePort: 32000, ports } as const;
    expect(troubles(balanced)).toEqual([]);
  });

  it('say why hints do not count', () => {
    const textOf = (...of: Parameters<typeof troubles>) => troubles(...of).map(({ text }) => text.split(': ')[1]);
    expect(textOf({}, hinted('a', undefined))).toEqual([
      '1 of 2 have no hint for zones, and hints count only if all have them',
    ]);
    expect(textOf({}, hinted('b', 'c'))).toEqual(['none is hinted for this node\'s zone "a"']);
    expect(textOf({}, hinted('b', 'c'), '')).toEqual([
      'the Node has no label topology.kubernetes.io/zone, so hints for zones cannot be followed',
    ]);
  });
});

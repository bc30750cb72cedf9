import { describe, expect, it } from 'vitest';
import { apiEndpoints } from '../../../test/fakes/api-server/index.ts';
import { targetsOf } from '../api/watch/target.ts';
import { ENDPOINT_SLICES } from '../resources.ts';
import { SharedValues } from './shared-values.ts';

const [, ENDPOINTS] = targetsOf(ENDPOINT_SLICES);

const project = (value: unknown) => ENDPOINTS!.project(value, new SharedValues());

describe('Endpoints', () => {
  it('become a slice for each family, ready or not', () => {
    const subset = {
      addresses: [{ ip: '10.244.0.5', nodeName: 'node-1' }, { ip: 'fd00::5' }],
      notReadyAddresses: [{ ip: '10.244.0.6' }],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
    };
    const metadata = (suffix: string) => ({
      name: `web-${suffix}`,
      namespace: 'demo',
      labels: { 'kubernetes.io/service-name': 'web' },
    });
    const ports = [{ name: 'http', port: 8080, protocol: 'TCP' }];
    const ready = { ready: true, serving: true, terminating: false };
    expect(project(apiEndpoints('demo/web', [subset], { app: 'web' })).objects).toEqual([
      {
        kind: 'EndpointSlice',
        metadata: metadata('ipv4'),
        addressType: 'IPv4',
        endpoints: [
          { addresses: ['10.244.0.5'], conditions: ready, nodeName: 'node-1' },
          { addresses: ['10.244.0.6'], conditions: { ready: false, serving: false, terminating: false } },
        ],
        ports,
      },
      {
        kind: 'EndpointSlice',
        metadata: metadata('ipv6'),
        addressType: 'IPv6',
        endpoints: [{ addresses: ['fd00::5'], conditions: ready }],
        ports,
      },
    ]);
  });

  it('with several subsets keep the ports of each', () => {
    const subset = (ip: string, port: number) => ({ addresses: [{ ip }], ports: [{ port }] });
    const { objects } = project(apiEndpoints('demo/web', [subset('10.244.0.5', 80), subset('10.244.0.6', 81)]));
    expect(objects).toMatchObject([
      { metadata: { name: 'web-ipv4' }, ports: [{ name: '', port: 80 }] },
      { metadata: { name: 'web-ipv4-1' }, ports: [{ name: '', port: 81 }] },
    ]);
  });

  it.each([
    ['nothing', undefined],
    ['no subsets', apiEndpoints('demo/web', [])],
    ['null subsets', { metadata: { name: 'web' }, subsets: null }],
    ['odd subsets', { metadata: { name: 'web' }, subsets: ['x', {}, { addresses: 'x' }] }],
  ])('of %s are no slices', (_, value) => {
    expect(project(value)).toEqual({ objects: [] });
  });

  it('that cannot be read are a problem', () => {
    expect(project(apiEndpoints('demo/web', [{ addresses: [{ ip: 'nonsense' }] }])).problems).toEqual([
      { path: ['endpoints', 0, 'addresses', 0], message: 'Expected an IPv4 address, found "nonsense"' },
    ]);
  });
});

import { describe, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { atOnce } from '../../core/index.ts';
import type { ServiceSpec, SliceEndpoint } from '../../kube/index.ts';
import { planService } from './plan.ts';

const CONTEXT = { family: 'IPv4', nodeName: 'n1', zone: '' } as const;
const NAME = 'shop/web';

const here = (address: string, ready = true): SliceEndpoint => ({
  addresses: [address],
  nodeName: 'n1',
  conditions: { ready, serving: ready },
});
const there = (address: string): SliceEndpoint => ({ addresses: [address], nodeName: 'n2' });

const NODE_PORT: Partial<ServiceSpec> = { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] };

describe('verdicts', () => {
  it.each<[string, Partial<ServiceSpec>, SliceEndpoint[], string, string]>([
    ['endpoints everywhere', NODE_PORT, [here('10.0.0.1')], 'forward', 'forward'],
    ['none', NODE_PORT, [], 'reject', 'reject'],
    [
      'none, both policies Local',
      { ...NODE_PORT, internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' },
      [],
      'reject',
      'reject',
    ],
    [
      'only unready ones here, Local',
      { internalTrafficPolicy: 'Local' },
      [here('10.0.0.1', false)],
      'reject',
      'reject',
    ],
    [
      'only remote ones, ITP Local',
      { ...NODE_PORT, internalTrafficPolicy: 'Local' },
      [there('10.0.0.1')],
      'drop',
      'forward',
    ],
    [
      'only remote ones, ETP Local',
      { ...NODE_PORT, externalTrafficPolicy: 'Local' },
      [there('10.0.0.1')],
      'forward',
      'drop',
    ],
    [
      'local ones, both Local',
      { ...NODE_PORT, internalTrafficPolicy: 'Local', externalTrafficPolicy: 'Local' },
      [here('10.0.0.1')],
      'forward',
      'forward',
    ],
    [
      'only remote ones, ETP Local without an external address',
      { externalTrafficPolicy: 'Local' },
      [there('10.0.0.1')],
      'forward',
      'forward',
    ],
  ])('with %s', (_, spec, endpoints, internal, external) => {
    const { ports } = atOnce(planService(makeService(NAME, spec), [makeSlice(NAME, endpoints)], CONTEXT));
    expect(ports).toEqual([expect.objectContaining({ internalVerdict: internal, externalVerdict: external })]);
  });
});

describe('endpoint sets', () => {
  const endpoints = [here('10.0.0.1'), there('10.0.0.2')];
  it.each<[string, Partial<ServiceSpec>, string[], string[]]>([
    ['ClusterIP', {}, ['10.0.0.1:8080', '10.0.0.2:8080'], []],
    ['ClusterIP, ITP Local', { internalTrafficPolicy: 'Local' }, [], ['10.0.0.1:8080']],
    [
      'NodePort, ITP Local',
      { ...NODE_PORT, internalTrafficPolicy: 'Local' },
      ['10.0.0.1:8080', '10.0.0.2:8080'],
      ['10.0.0.1:8080'],
    ],
    [
      'NodePort, ETP Local',
      { ...NODE_PORT, externalTrafficPolicy: 'Local' },
      ['10.0.0.1:8080', '10.0.0.2:8080'],
      ['10.0.0.1:8080'],
    ],
  ])('of %s', (_, spec, cluster, local) => {
    const { ports } = atOnce(planService(makeService(NAME, spec), [makeSlice(NAME, endpoints)], CONTEXT));
    expect(ports[0]!.clusterEndpoints.map(({ key }) => key)).toEqual(cluster);
    expect(ports[0]!.localEndpoints.map(({ key }) => key)).toEqual(local);
  });

  it('belong to the port of the same name and protocol', () => {
    const service = makeService(NAME, {
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP' },
        { name: 'dns-tcp', port: 53 },
      ],
    });
    const slice = makeSlice(NAME, ['10.0.0.1'], { ports: [{ name: 'dns', protocol: 'UDP', port: 5353 }] });
    const { ports } = atOnce(planService(service, [slice], CONTEXT));
    expect(ports.map((port) => [port.key, port.clusterEndpoints.map(({ key }) => key)])).toEqual([
      ['shop/web:dns/UDP', ['10.0.0.1:5353']],
      ['shop/web:dns-tcp/TCP', []],
    ]);
  });
});

it('collects the problems of the Service and of its slices', () => {
  const service = makeService(NAME, { externalIPs: ['nonsense'] });
  expect(atOnce(planService(service, [makeSlice(NAME, ['rubbish'])], CONTEXT)).problems).toEqual([
    'spec.externalIPs has "nonsense", which is not an IP address',
    'EndpointSlice "web-a" has "rubbish", which is not an IPv4 address',
  ]);
});

it('makes nothing of slices alone', () => {
  expect(atOnce(planService(undefined, [makeSlice(NAME, ['10.0.0.1'])], CONTEXT))).toEqual({ ports: [], problems: [] });
});

it('plans nothing that is not in the contract: the port name stays inside', () => {
  const { ports } = atOnce(planService(makeService(NAME), [], CONTEXT));
  expect(Object.keys(ports[0]!)).not.toContain('portName');
});

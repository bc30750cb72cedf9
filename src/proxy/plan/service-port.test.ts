import { describe, expect, it } from 'vitest';
import { makeService } from '../../../test/fakes/service-objects.ts';
import { formatCidr, formatIp, type IpFamily } from '../../core/index.ts';
import type { ServiceSpec } from '../../kube/index.ts';
import { servicePortsOf } from './service-port.ts';

const NAME = 'shop/web';

function portOf(
  spec: Partial<ServiceSpec>,
  family: IpFamily = 'IPv4',
  ingress: { ip?: string; ipMode?: 'VIP' | 'Proxy' }[] = [],
) {
  const { ports, problems } = servicePortsOf(makeService(NAME, spec, { vips: ingress }), family);
  return { port: ports[0]!, ports, problems };
}

describe('ClusterIP', () => {
  it.each<[string, Partial<ServiceSpec>]>([
    ['is missing', { clusterIP: '' }],
    ['is headless', { clusterIP: 'None' }],
    ['belongs to a DNS alias', { type: 'ExternalName' }],
  ])('makes no ports when it %s', (_, spec) => {
    expect(portOf(spec)).toMatchObject({ ports: [], problems: [] });
  });

  it.each<[string, Partial<ServiceSpec>, string | undefined, string | undefined]>([
    ['clusterIP alone', { clusterIP: '10.96.0.1' }, '10.96.0.1', undefined],
    ['clusterIP alone, IPv6', { clusterIP: 'fd00::1' }, undefined, 'fd00::1'],
    [
      'dual stack, IPv6 first',
      { clusterIP: 'fd00::1', clusterIPs: ['fd00::1', '10.96.0.1'], ipFamilies: ['IPv6', 'IPv4'] },
      '10.96.0.1',
      'fd00::1',
    ],
    [
      'a family left out of ipFamilies',
      { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1', 'fd00::1'], ipFamilies: ['IPv4'] },
      '10.96.0.1',
      undefined,
    ],
    [
      'a manifest with clusterIPs alone',
      { clusterIP: undefined as never, clusterIPs: ['10.96.0.1', 'fd00::1'] },
      '10.96.0.1',
      'fd00::1',
    ],
    [
      'a manifest with ipFamilies but no clusterIPs',
      { clusterIP: '10.96.0.1', ipFamilies: ['IPv4'] },
      '10.96.0.1',
      undefined,
    ],
  ])('is chosen by family: %s', (_, spec, v4, v6) => {
    const address = (family: IpFamily) =>
      servicePortsOf(makeService(NAME, spec), family).ports.map((p) => formatIp(p.clusterIp));
    expect(address('IPv4')).toEqual(v4 ? [v4] : []);
    expect(address('IPv6')).toEqual(v6 ? [v6] : []);
  });

  it('hides the other addresses of a family it does not have', () => {
    expect(portOf({ clusterIP: '10.96.0.1', externalIPs: ['fd00::9'] }, 'IPv6').ports).toEqual([]);
  });

  it('is reported when it cannot be read', () => {
    const { ports, problems } = portOf({ clusterIP: '10.96.0.300' });
    expect(ports).toEqual([]);
    expect(problems).toEqual(['spec.clusterIPs has "10.96.0.300", which is not an IP address']);
  });
});

describe('ports', () => {
  it('become one service port each, named as kube-proxy names them', () => {
    const { ports } = portOf({
      ports: [
        { name: 'dns', port: 53, protocol: 'UDP', nodePort: 30053 },
        { name: 'dns-tcp', port: 53 },
        { port: 99, protocol: 'SCTP' },
      ],
    });
    expect(
      ports.map(({ key, name, portName, protocol, port, nodePort }) => [key, name, portName, protocol, port, nodePort]),
    ).toEqual([
      ['shop/web:dns/UDP', 'shop/web:dns', 'dns', 'UDP', 53, 30053],
      ['shop/web:dns-tcp/TCP', 'shop/web:dns-tcp', 'dns-tcp', 'TCP', 53, 0],
      ['shop/web:/SCTP', 'shop/web', '', 'SCTP', 99, 0],
    ]);
    expect(new Set(ports.map((p) => p.serviceName))).toEqual(new Set([NAME]));
  });

  it('that cannot be used are reported, and the others served', () => {
    const { ports, problems } = portOf({
      ports: [
        { name: 'a', port: 0 },
        { name: 'b', port: 80, protocol: 'ICMP' as never },
        { name: 'c', port: 80, nodePort: 70_000 },
        { name: 'c', port: 81 },
      ],
    });
    expect(ports.map((p) => [p.portName, p.port, p.nodePort])).toEqual([['c', 80, 0]]);
    expect(problems).toEqual([
      'spec.ports[0].port is "0", which is not a port number; the port is ignored',
      'spec.ports[1].protocol is "ICMP", which is none of TCP, UDP, SCTP; the port is ignored',
      'spec.ports[2].nodePort is "70000", which is not a port number; no NodePort is opened',
      'spec.ports[3] has the name and protocol of an earlier port and is ignored',
    ]);
  });
});

describe('policies', () => {
  it.each<[string, Partial<ServiceSpec>, string]>([
    ['a NodePort', { type: 'NodePort', ports: [{ port: 80, nodePort: 30080 }] }, 'Local'],
    ['an external IP', { externalIPs: ['192.0.2.1'] }, 'Local'],
    ['no external address', { type: 'ClusterIP' }, 'Cluster'],
    ['an external IP of the other family only', { externalIPs: ['fd00::1'] }, 'Cluster'],
  ])('externalTrafficPolicy Local with %s', (_, spec, expected) => {
    expect(portOf({ externalTrafficPolicy: 'Local', ...spec }).port.externalPolicy).toBe(expected);
  });

  it('internalTrafficPolicy Local always holds, and Cluster is the default of both', () => {
    expect(portOf({ internalTrafficPolicy: 'Local' }).port.internalPolicy).toBe('Local');
    expect(portOf({ externalIPs: ['192.0.2.1'] }).port).toMatchObject({
      internalPolicy: 'Cluster',
      externalPolicy: 'Cluster',
    });
  });
});

describe('external addresses', () => {
  it('are filtered by family, once each; blanks are passed over, nonsense is reported', () => {
    const { port, problems } = portOf({ externalIPs: ['192.0.2.1', 'fd00::1', ' ', '192.0.2.001', 'web.example'] });
    expect(port.externalIps.map(formatIp)).toEqual(['192.0.2.1']);
    expect(problems).toEqual(['spec.externalIPs has "web.example", which is not an IP address']);
  });

  it('take load-balancer addresses in mode VIP only, whatever the type of the Service', () => {
    const ingress = [
      { ip: '192.0.2.1' },
      { ip: '192.0.2.2', ipMode: 'VIP' as const },
      { ip: '192.0.2.3', ipMode: 'Proxy' as const },
      {},
      { ip: 'fd00::1' },
    ];
    expect(portOf({ type: 'NodePort' }, 'IPv4', ingress).port.loadBalancerVips.map(formatIp)).toEqual([
      '192.0.2.1',
      '192.0.2.2',
    ]);
  });
});

describe('loadBalancerSourceRanges', () => {
  const vip = [{ ip: '192.0.2.1' }];
  const ranges = (loadBalancerSourceRanges: string[], ingress = vip) => {
    const { port, problems } = portOf({ type: 'LoadBalancer', loadBalancerSourceRanges }, 'IPv4', ingress);
    return { ranges: port.sourceRanges.map(formatCidr), vips: port.loadBalancerVips.map(formatIp), problems };
  };

  it('are trimmed, cleared of host bits, filtered by family, and kept once each', () => {
    expect(ranges([' 10.1.2.3/8 ', '10.0.0.0/8', 'fd00::/8'])).toEqual({
      ranges: ['10.0.0.0/8'],
      vips: ['192.0.2.1'],
      problems: [],
    });
  });

  it('mean everybody when one covers the whole family', () => {
    expect(ranges(['10.0.0.0/8', '0.0.0.0/0'])).toEqual({ ranges: [], vips: ['192.0.2.1'], problems: [] });
  });

  it('mean everybody when all are of the other family, but not silently', () => {
    expect(ranges(['fd00::/8'])).toEqual({
      ranges: [],
      vips: ['192.0.2.1'],
      problems: [
        'spec.loadBalancerSourceRanges has no IPv4 entry, so everybody may use 192.0.2.1; list IPv4 ranges too',
      ],
    });
  });

  it('that cannot be read never open the load balancer to everybody', () => {
    expect(ranges(['10.0.0.0/8', '10.0.0.0/40'])).toEqual({
      ranges: ['10.0.0.0/8'],
      vips: ['192.0.2.1'],
      problems: ['spec.loadBalancerSourceRanges has "10.0.0.0/40", which is not a CIDR'],
    });
    expect(ranges(['10.0.0.0/40'])).toEqual({
      ranges: [],
      vips: [],
      problems: [
        'spec.loadBalancerSourceRanges has "10.0.0.0/40", which is not a CIDR',
        'spec.loadBalancerSourceRanges has no usable entry; the load-balancer addresses are not served',
      ],
    });
  });
});

it.each<[string, Partial<ServiceSpec>, number, number]>([
  ['off', {}, 0, 0],
  ['by default three hours', { sessionAffinity: 'ClientIP' }, 10_800, 0],
  ['as configured', { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } }, 5, 0],
  [
    'not of another kind',
    { sessionAffinity: 'None', sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } },
    0,
    0,
  ],
  [
    'bounded',
    { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } },
    10_800,
    1,
  ],
])('session affinity is %s', (_, spec, seconds, problemCount) => {
  const { port, problems } = portOf(spec);
  expect(port.affinitySeconds).toBe(seconds);
  expect(problems).toHaveLength(problemCount);
});

it.each<[string, Partial<ServiceSpec>, number, number]>([
  [
    'LoadBalancer and Local',
    { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30999 },
    30999,
    0,
  ],
  [
    'LoadBalancer and Cluster',
    { type: 'LoadBalancer', externalTrafficPolicy: 'Cluster', healthCheckNodePort: 30999 },
    0,
    0,
  ],
  ['NodePort and Local', { type: 'NodePort', externalTrafficPolicy: 'Local', healthCheckNodePort: 30999 }, 0, 0],
  ['LoadBalancer and Local without one', { type: 'LoadBalancer', externalTrafficPolicy: 'Local' }, 0, 1],
])('healthCheckNodePort of %s', (_, spec, expected, problemCount) => {
  const { port, problems } = portOf(spec);
  expect(port.healthCheckNodePort).toBe(expected);
  expect(problems).toHaveLength(problemCount);
});

describe('the hint of the mode in use', () => {
  const hint = {
    annotation: 'nodeplane.io/ipvs-scheduler',
    whyNot: (value: string) => (value === 'bad' ? 'which is no good' : undefined),
  };
  const read = (text: string, allowed = {}) => {
    const annotated = makeService(NAME, {}, { annotations: { [hint.annotation]: text } });
    const { ports, problems } = servicePortsOf(annotated, 'IPv4', allowed);
    return { hint: ports[0]!.hint, problems };
  };

  it('is what the annotation says', () => {
    expect(read('lc', { hint })).toEqual({ hint: 'lc', problems: [] });
    expect(read(' mh,mh-fallback ', { hint })).toEqual({ hint: 'mh,mh-fallback', problems: [] });
    expect(read('', { hint })).toEqual({ hint: undefined, problems: [] });
    expect(read('bad', { hint })).toEqual({
      hint: undefined,
      problems: ['nodeplane.io/ipvs-scheduler is "bad", which is no good'],
    });
  });

  it('is nothing in a mode that has none', () => {
    expect(read('lc')).toEqual({ hint: undefined, problems: [] });
    expect(read('bad')).toEqual({ hint: undefined, problems: [] });
  });
});

import { describe, expect, it } from 'vitest';
import { makeService, makeSlice } from '../../../test/fakes/service-objects.ts';
import { atOnce, parseCidr, parseIp } from '../../core/index.ts';
import { planService } from './plan.ts';
import { sameNodePlan, samePortPlan } from './same-plan.ts';
import type { NodePlan, ServicePortPlan } from './service-plan.ts';

function makePort(): ServicePortPlan {
  const service = makeService('a/x', { externalIPs: ['192.0.2.1'] }, { vips: ['192.0.2.2'] });
  const { ports } = atOnce(
    planService(service, [makeSlice('a/x', ['10.0.0.1', '10.0.0.2'])], {
      family: 'IPv4',
      nodeName: 'n1',
      zone: '',
    }),
  );
  return ports[0]!;
}

describe('samePortPlan', () => {
  it('holds for equal values in different objects', () => {
    expect(samePortPlan(makePort(), makePort())).toBe(true);
  });

  const [first, second] = makePort().clusterEndpoints;
  const differences: { readonly [Field in keyof ServicePortPlan]: ServicePortPlan[Field] } = {
    key: 'a/y:/TCP',
    serviceName: 'a/y',
    name: 'a/y',
    protocol: 'UDP',
    clusterIp: parseIp('10.96.0.11'),
    port: 81,
    nodePort: 30080,
    externalIps: [],
    loadBalancerVips: [parseIp('192.0.2.3')],
    sourceRanges: [parseCidr('10.0.0.0/8')],
    affinitySeconds: 1,
    healthCheckNodePort: 1,
    hint: 'lc',
    internalPolicy: 'Local',
    externalPolicy: 'Local',
    clusterEndpoints: [first!],
    localEndpoints: [first!],
    hasAnyEndpoints: false,
    internalVerdict: 'drop',
    externalVerdict: 'drop',
  };
  it.each(Object.entries(differences))('sees a difference in %s', (field, value) => {
    expect(samePortPlan(makePort(), { ...makePort(), [field]: value })).toBe(false);
  });

  it.each([{ key: '10.0.0.9:8080' }, { isLocal: true }, { ready: false }, { serving: false }, { terminating: true }])(
    'sees an endpoint with %j',
    (change) => {
      expect(samePortPlan(makePort(), { ...makePort(), clusterEndpoints: [first!, { ...second!, ...change }] })).toBe(
        false,
      );
    },
  );

  it('does not mind hints, which have done their work', () => {
    const hinted = { ...second!, zoneHints: ['z'], nodeHints: ['n'] };
    expect(samePortPlan(makePort(), { ...makePort(), clusterEndpoints: [first!, hinted] })).toBe(true);
  });
});

describe('sameNodePlan', () => {
  const makeNode = (): NodePlan => ({
    localDetector: { kind: 'cidr', cidr: parseCidr('10.244.0.0/16') },
    masqueradeMark: 0x4000,
    masqueradeAll: false,
    nodePortAddresses: [parseIp('192.0.2.1')],
    nodeIp: parseIp('192.0.2.1'),
  });

  it('holds for equal values in different objects', () => {
    expect(sameNodePlan(makeNode(), makeNode())).toBe(true);
    const none = {
      ...makeNode(),
      localDetector: { kind: 'none' },
      nodePortAddresses: 'all',
      nodeIp: undefined,
    } as const;
    expect(sameNodePlan(none, { ...none, localDetector: { kind: 'none' } })).toBe(true);
  });

  it.each<Partial<NodePlan>>([
    { localDetector: { kind: 'none' } },
    { localDetector: { kind: 'cidr', cidr: parseCidr('10.244.0.0/17') } },
    { localDetector: { kind: 'bridge', interfaceName: 'cni0' } },
    { masqueradeMark: 0x8000 },
    { masqueradeAll: true },
    { nodePortAddresses: 'all' },
    { nodePortAddresses: [] },
    { nodeIp: parseIp('192.0.2.2') },
    { nodeIp: undefined },
    { podCidrs: [parseCidr('10.244.1.0/24')] },
  ])('sees %j', (change) => {
    expect(sameNodePlan(makeNode(), { ...makeNode(), ...change })).toBe(false);
    expect(sameNodePlan({ ...makeNode(), ...change }, makeNode())).toBe(false);
  });

  it('compares the names of bridges and prefixes', () => {
    const bridge = (interfaceName: string) => ({
      ...makeNode(),
      localDetector: { kind: 'bridge', interfaceName } as const,
    });
    const prefix = (interfacePrefix: string) => ({
      ...makeNode(),
      localDetector: { kind: 'prefix', interfacePrefix } as const,
    });
    expect(sameNodePlan(bridge('a'), bridge('a'))).toBe(true);
    expect(sameNodePlan(bridge('a'), bridge('b'))).toBe(false);
    expect(sameNodePlan(prefix('a'), prefix('a'))).toBe(true);
    expect(sameNodePlan(prefix('a'), prefix('b'))).toBe(false);
  });
});

import { describe, expect, it } from 'vitest';
import { makeNode } from '../../test/fakes/service-objects.ts';
import { formatCidr, formatIp, type IpFamily, parseCidr, parseIp } from '../core/index.ts';
import type { Node } from '../kube/index.ts';
import { makeNodePlan, type NodeSettings, zoneOf } from './node-plan.ts';

const DEFAULTS: NodeSettings = { clusterCidrs: [], masqueradeBit: 14, masqueradeAll: false, nodePortAddresses: 'all' };
const LOCAL = ['127.0.0.1', '192.0.2.7', '192.0.2.6', '192.0.2.7', '198.51.100.1', '::1', 'fd00::7'].map(parseIp);

function plan(settings: Partial<NodeSettings>, node?: Node, family: IpFamily = 'IPv4') {
  return makeNodePlan({ family, node, settings: { ...DEFAULTS, ...settings }, localAddresses: LOCAL });
}

describe('local detector', () => {
  const detector = (clusterCidrs: string[], spec: Node['spec'], family: IpFamily = 'IPv4') => {
    const found = plan(
      { clusterCidrs: clusterCidrs.map(parseCidr) },
      makeNode('n1', spec ? { spec } : {}),
      family,
    ).localDetector;
    return found.kind === 'cidr' ? formatCidr(found.cidr) : found.kind;
  };

  it.each<[string, string[], Node['spec'], string, string]>([
    ['the cluster CIDR', ['10.0.0.0/8', '10.1.0.0/16'], { podCIDRs: ['10.9.0.0/24'] }, '10.0.0.0/8', 'none'],
    ['both families', ['fd00::/48', '10.0.0.0/8'], undefined, '10.0.0.0/8', 'fd00::/48'],
    ['the pod CIDRs of the node', [], { podCIDRs: ['fd00:9::/64', '10.9.0.0/24'] }, '10.9.0.0/24', 'fd00:9::/64'],
    ['podCIDR alone', [], { podCIDR: '10.9.0.0/24' }, '10.9.0.0/24', 'none'],
    ['nothing', [], undefined, 'none', 'none'],
    ['rubbish', [], { podCIDRs: ['rubbish', '10.9.0.0/24'] }, '10.9.0.0/24', 'none'],
  ])('from %s', (_, clusterCidrs, spec, v4, v6) => {
    expect(detector(clusterCidrs, spec)).toBe(v4);
    expect(detector(clusterCidrs, spec, 'IPv6')).toBe(v6);
  });
});

describe('node address', () => {
  const node = makeNode('n1', {
    status: {
      addresses: [
        { type: 'Hostname', address: '192.0.2.1' },
        { type: 'ExternalIP', address: '198.51.100.1' },
        { type: 'ExternalIP', address: 'fd00::9' },
        { type: 'InternalIP', address: 'rubbish' },
        { type: 'InternalIP', address: '192.0.2.7' },
        { type: 'InternalIP', address: '192.0.2.8' },
      ],
    },
  });

  it('is the first InternalIP of the family, else the first ExternalIP', () => {
    expect(plan({}, node).nodeIp).toEqual(parseIp('192.0.2.7'));
    expect(plan({}, node, 'IPv6').nodeIp).toEqual(parseIp('fd00::9'));
    expect(plan({}, undefined).nodeIp).toBeUndefined();
  });

  it('alone answers on NodePorts when they are "primary"; unknown, nothing does', () => {
    expect(plan({ nodePortAddresses: 'primary' }, node).nodePortAddresses).toEqual([parseIp('192.0.2.7')]);
    expect(plan({ nodePortAddresses: 'primary' }, undefined).nodePortAddresses).toEqual([]);
  });
});

describe('NodePort addresses', () => {
  const addresses = (cidrs: string[], family: IpFamily = 'IPv4') => {
    const found = plan({ nodePortAddresses: cidrs.map(parseCidr) }, undefined, family).nodePortAddresses;
    return found === 'all' ? found : found.map(formatIp);
  };

  it('are the local addresses in the ranges, sorted, each once, without loopback', () => {
    expect(addresses(['192.0.2.0/24', '127.0.0.0/8'])).toEqual(['192.0.2.6', '192.0.2.7']);
    expect(addresses(['fd00::/8', '::1/128'], 'IPv6')).toEqual(['fd00::7']);
  });

  it('may be none', () => {
    expect(addresses(['203.0.113.0/24'])).toEqual([]);
  });

  it('are all when the ranges are empty, cover everything, or speak of the other family only', () => {
    expect(addresses([])).toBe('all');
    expect(addresses(['192.0.2.0/24', '0.0.0.0/0'])).toBe('all');
    expect(addresses(['192.0.2.0/24'], 'IPv6')).toBe('all');
  });
});

it('turns the masquerade bit into a mark that is a positive number', () => {
  expect(plan({ masqueradeBit: 14 }).masqueradeMark).toBe(0x4000);
  expect(plan({ masqueradeBit: 0 }).masqueradeMark).toBe(1);
  expect(plan({ masqueradeBit: 31 }).masqueradeMark).toBe(0x80000000);
  expect(plan({ masqueradeAll: true }).masqueradeAll).toBe(true);
});

it('reads the zone from the well-known label', () => {
  expect(zoneOf(makeNode('n1', { labels: { 'topology.kubernetes.io/zone': 'a' } }))).toBe('a');
  expect(zoneOf(makeNode('n1'))).toBe('');
  expect(zoneOf(undefined)).toBe('');
});

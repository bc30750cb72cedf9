import { describe, expect, it } from 'vitest';
import { makeNode } from '../../../test/fakes/service-objects.ts';
import { formatCidr, formatIp, type IpFamily, parseCidr, parseIp } from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { translatedNodePortAddresses } from './localhost.ts';
import {
  type LocalDetection,
  type LocalhostNodePorts,
  makeNodePlan,
  type NodeSettings,
  primaryFamilyOf,
  zoneOf,
} from './node-plan.ts';

const DEFAULTS: NodeSettings = {
  detectLocal: { mode: 'NodeCIDR' },
  masqueradeBit: 14,
  masqueradeAll: false,
  nodePortAddresses: 'all',
};
const LOCAL = ['127.0.0.1', '192.0.2.7', '192.0.2.6', '192.0.2.7', '198.51.100.1', '::1', 'fd00::7'].map(parseIp);

function plan(settings: Partial<NodeSettings>, node?: Node, family: IpFamily = 'IPv4') {
  return makeNodePlan({ family, node, settings: { ...DEFAULTS, ...settings }, localAddresses: LOCAL });
}

describe('local detector', () => {
  const detector = (detectLocal: LocalDetection, spec?: Node['spec'], family: IpFamily = 'IPv4') => {
    const found = plan({ detectLocal }, makeNode('n1', spec ? { spec } : {}), family).localDetector;
    return found.kind === 'cidr' ? formatCidr(found.cidr) : found;
  };
  const cluster = (...cidrs: string[]): LocalDetection => ({ mode: 'ClusterCIDR', cidrs: cidrs.map(parseCidr) });
  const none = { kind: 'none' };

  it.each<[string, LocalDetection, Node['spec'], unknown, unknown]>([
    ['the cluster CIDR', cluster('10.0.0.0/8', '10.1.0.0/16'), { podCIDRs: ['10.9.0.0/24'] }, '10.0.0.0/8', none],
    ['both families', cluster('fd00::/48', '10.0.0.0/8'), undefined, '10.0.0.0/8', 'fd00::/48'],
    ['no cluster CIDR', cluster(), { podCIDRs: ['10.9.0.0/24'] }, none, none],
    ['the pod CIDRs', { mode: 'NodeCIDR' }, { podCIDRs: ['fd00:9::/64', '10.9.0.0/24'] }, '10.9.0.0/24', 'fd00:9::/64'],
    ['podCIDR alone', { mode: 'NodeCIDR' }, { podCIDR: '10.9.0.0/24' }, '10.9.0.0/24', none],
    ['no pod CIDRs', { mode: 'NodeCIDR' }, undefined, none, none],
    ['rubbish', { mode: 'NodeCIDR' }, { podCIDRs: ['rubbish', '10.9.0.0/24'] }, '10.9.0.0/24', none],
  ])('from %s', (_, detection, spec, v4, v6) => {
    expect(detector(detection, spec)).toEqual(v4);
    expect(detector(detection, spec, 'IPv6')).toEqual(v6);
  });

  it('from interfaces, the same for both families', () => {
    for (const family of ['IPv4', 'IPv6'] as const) {
      const bridge = detector({ mode: 'BridgeInterface', bridgeInterface: 'cni0' }, undefined, family);
      expect(bridge).toEqual({ kind: 'bridge', interfaceName: 'cni0' });
      const prefix = detector({ mode: 'InterfaceNamePrefix', interfaceNamePrefix: 'cali' }, undefined, family);
      expect(prefix).toEqual({ kind: 'prefix', interfacePrefix: 'cali' });
    }
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

  it('may be given, in its own family', () => {
    const nodeIp = parseIp('203.0.113.9');
    expect(plan({ nodeIp }, node).nodeIp).toEqual(nodeIp);
    expect(plan({ nodeIp }, node, 'IPv6').nodeIp).toEqual(parseIp('fd00::9'));
    expect(primaryFamilyOf(node)).toBe('IPv4');
    expect(
      primaryFamilyOf(makeNode('n1', { status: { addresses: [{ type: 'InternalIP', address: 'fd00::9' }] } })),
    ).toBe('IPv6');
  });

  it('alone answers on NodePorts when they are "primary"; unknown, that by which the machine reaches others, or nothing', () => {
    expect(plan({ nodePortAddresses: 'primary' }, node).nodePortAddresses).toEqual([parseIp('192.0.2.7')]);
    expect(plan({ nodePortAddresses: 'primary' }, undefined).nodePortAddresses).toEqual([]);
    const ownSource = () => parseIp('192.0.2.9');
    const input = {
      family: 'IPv4',
      settings: { ...DEFAULTS, nodePortAddresses: 'primary' },
      localAddresses: [],
    } as const;
    const answering = (of: typeof node | undefined) =>
      makeNodePlan({ ...input, node: of, ownSource }).nodePortAddresses;
    expect(answering(undefined)).toEqual([parseIp('192.0.2.9')]);
    expect(answering(node)).toEqual([parseIp('192.0.2.7')]);
    expect(answering(makeNode('n1', {}))).toEqual([]);
  });
});

describe('NodePorts at loopback addresses', () => {
  const loopback = (
    nodePortAddresses: 'all' | 'primary' | string[],
    family: IpFamily = 'IPv4',
    localhostNodePorts: LocalhostNodePorts = 'as-kube-proxy',
  ) => {
    const addresses = typeof nodePortAddresses === 'string' ? nodePortAddresses : nodePortAddresses.map(parseCidr);
    const found = plan({ nodePortAddresses: addresses, localhostNodePorts }, undefined, family);
    return [found.loopbackNodePorts, found.nodePortAddresses === 'all' ? 'all' : found.nodePortAddresses.map(formatIp)];
  };

  it('are there as in kube-proxy when the addresses allow it, in IPv4', () => {
    expect(loopback('all')).toEqual([true, 'all']);
    expect(loopback(['127.0.0.0/8', '192.0.2.7/32'])).toEqual([true, ['127.0.0.1', '192.0.2.7']]);
    expect(loopback(['192.0.2.7/32'])).toEqual([false, ['192.0.2.7']]);
    expect(loopback('primary')).toEqual([false, []]);
    expect(loopback('all', 'IPv6')).toEqual([false, 'all']);
    expect(plan({}).loopbackNodePorts).toBe(false);
  });

  it('are there in both families and whatever the addresses when always asked for', () => {
    for (const family of ['IPv4', 'IPv6'] as const) {
      expect(loopback('all', family, 'always')).toEqual([true, 'all']);
      expect(loopback('primary', family, 'always')).toEqual([true, []]);
    }
    expect(loopback(['192.0.2.7/32'], 'IPv4', 'always')).toEqual([true, ['192.0.2.7']]);
    expect(loopback(['::1/128'], 'IPv6', 'always')).toEqual([true, ['::1']]);
  });

  it('are translated at the stand-in, which is in a list only then; loopback addresses never are', () => {
    const translated = (nodePortAddresses: string[], loopbackNodePorts: boolean, family: IpFamily = 'IPv4') => {
      const node = { nodePortAddresses: nodePortAddresses.map((text) => parseIp(text)), loopbackNodePorts };
      const addresses = translatedNodePortAddresses(family, node);
      return addresses === 'all' ? addresses : addresses.map(formatIp);
    };
    expect(translated(['127.0.0.1', '192.0.2.7'], true)).toEqual(['192.0.2.7', '192.0.0.127']);
    expect(translated(['127.0.0.1'], true)).toEqual(['192.0.0.127']);
    expect(translated(['::1', 'fd00::7'], true, 'IPv6')).toEqual(['fd00::7', 'fd02:de25:5500::1']);
    expect(translated(['192.0.2.7'], false)).toEqual(['192.0.2.7']);
    expect(translatedNodePortAddresses('IPv4', { nodePortAddresses: 'all', loopbackNodePorts: true })).toBe('all');
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

it.each(['ClusterCIDR', 'NodeCIDR'] as const)('has the pod CIDRs of its family, with pods told by %s', (mode) => {
  const node = makeNode('n1', { spec: { podCIDRs: ['fd00:9::/64', '10.9.0.0/24'] } });
  const podCidrs = (family: IpFamily, of?: Node) =>
    plan({ detectLocal: { mode, cidrs: [] } }, of, family).podCidrs!.map(formatCidr);
  expect(podCidrs('IPv4', node)).toEqual(['10.9.0.0/24']);
  expect(podCidrs('IPv6', node)).toEqual(['fd00:9::/64']);
  expect(podCidrs('IPv4')).toEqual([]);
});

it('has the ServiceCIDRs of its family, each once, whatever object they are in', () => {
  const serviceCidr = (...cidrs: string[]) =>
    ({ kind: 'ServiceCIDR', metadata: { name: cidrs[0]!, namespace: '' }, spec: { cidrs } }) as const;
  const plan = makeNodePlan({
    family: 'IPv4',
    node: undefined,
    settings: DEFAULTS,
    localAddresses: LOCAL,
    serviceCidrs: [
      serviceCidr('10.112.0.0/16', 'fd00::/112'),
      serviceCidr('10.96.0.0/16'),
      serviceCidr('10.112.0.0/16'),
    ],
  });
  expect(plan.serviceCidrs!.map(formatCidr)).toEqual(['10.96.0.0/16', '10.112.0.0/16']);
});

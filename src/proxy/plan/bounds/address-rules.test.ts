import { describe, expect, it } from 'vitest';
import { makeNode, makeService, makeSlice } from '../../../../test/fakes/service-objects.ts';
import { parseCidr, parseIp } from '../../../core/index.ts';
import { AddressRules, type AddressRulesInput } from './address-rules.ts';

function rules(parts: Partial<AddressRulesInput> = {}): AddressRules {
  return new AddressRules({
    serviceCidrs: [],
    nodes: [],
    nodeIps: [],
    ownAddresses: [],
    apiServer: undefined,
    apiService: undefined,
    apiSlices: [],
    externalIpCidrs: [],
    ...parts,
  });
}

const KNOWN = rules({
  serviceCidrs: [
    {
      kind: 'ServiceCIDR',
      metadata: { name: 'kubernetes', namespace: '' },
      spec: { cidrs: ['10.96.0.0/12', 'fd00:96::/108'] },
    },
  ],
  nodes: [
    makeNode('n2', {
      status: {
        addresses: [
          { type: 'InternalIP', address: '192.168.1.2' },
          { type: 'ExternalIP', address: '2001:db8::2' },
          { type: 'Hostname', address: '203.0.113.77' },
        ],
      },
    }),
  ],
  nodeIps: [parseIp('192.168.1.1')],
  apiServer: parseIp('192.168.1.250'),
  apiService: makeService('default/kubernetes', { clusterIP: '172.20.0.1', clusterIPs: ['172.20.0.1', 'fd01::1'] }),
  apiSlices: [makeSlice('default/kubernetes', ['192.168.1.251'])],
});

describe.each(['externalIp', 'loadBalancerVip'] as const)('%s', (kind) => {
  it.each([
    ['10.96.0.10', 'is within the range of ClusterIPs 10.96.0.0/12'],
    ['fd00:96::a', 'is within the range of ClusterIPs fd00:96::/108'],
    ['192.168.1.1', 'is an address of this node'],
    ['192.168.1.2', 'is an address of the node "n2"'],
    ['2001:db8::2', 'is an address of the node "n2"'],
    ['192.168.1.250', "is the API server's address"],
    ['192.168.1.251', "is the API server's address"],
    ['172.20.0.1', "is the API server's address"],
    ['fd01::1', "is the API server's address"],
    ['127.0.0.1', 'is a loopback address'],
    ['::1', 'is a loopback address'],
    ['169.254.169.254', 'is a link-local address'],
    ['fe80::1', 'is a link-local address'],
    ['224.0.0.1', 'is a multicast address'],
    ['239.1.2.3', 'is a multicast address'],
    ['ff0e::1', 'is a multicast address'],
    ['0.0.0.0', 'is no address of a host'],
    ['::', 'is no address of a host'],
  ])('%s %s', (ip, reason) => {
    expect(KNOWN.refusal(parseIp(ip), kind)).toBe(reason);
  });

  it.each(['203.0.113.1', '203.0.113.77', '192.168.1.3', '2001:db8::1', '240.0.0.1'])('%s is allowed', (ip) => {
    expect(KNOWN.refusal(parseIp(ip), kind)).toBeUndefined();
  });
});

describe('ClusterIP', () => {
  it.each([
    ['192.168.1.1', 'is an address of this node'],
    ['127.0.0.1', 'is a loopback address'],
    ['::1', 'is a loopback address'],
    ['224.0.0.1', 'is a multicast address'],
    ['0.0.0.0', 'is no address of a host'],
  ])('%s %s', (ip, reason) => {
    expect(KNOWN.clusterIpRefusal(parseIp(ip))).toBe(reason);
  });

  it.each(['10.96.0.10', 'fd00:96::a', '172.20.0.1', '192.168.1.2', '192.168.1.250', '169.254.20.10'])(
    '%s is allowed',
    (ip) => {
      expect(KNOWN.clusterIpRefusal(parseIp(ip))).toBeUndefined();
    },
  );
});

describe('an address on an interface of this node by which it is not known', () => {
  const [floating, own] = [parseIp('192.168.1.77'), parseIp('192.168.1.1')];
  const known = rules({ nodeIps: [own], ownAddresses: [own, floating] });

  it('may be a load-balancer VIP, and nothing else', () => {
    expect(known.refusal(floating, 'loadBalancerVip')).toBeUndefined();
    expect(known.refusal(own, 'loadBalancerVip')).toBe('is an address of this node');
    expect(known.refusal(floating, 'externalIp')).toBe('is an address of this node');
    expect(known.clusterIpRefusal(floating)).toBe('is an address of this node');
  });

  it('may be none where nobody tells by which the node is known', () => {
    const unknown = rules({ ownAddresses: [own, floating] });
    expect(unknown.refusal(floating, 'loadBalancerVip')).toBe('is an address of this node');
    expect(unknown.equals(known)).toBe(false);
  });
});

describe('a list of allowed external IPs', () => {
  const listed = rules({
    externalIpCidrs: ['203.0.113.0/24', '192.168.1.0/24'].map(parseCidr),
    ownAddresses: [parseIp('192.168.1.1')],
  });

  it('refuses those of either family that are not in it, and opens nothing that is refused anyway', () => {
    expect(listed.refusal(parseIp('203.0.113.1'), 'externalIp')).toBeUndefined();
    expect(listed.refusal(parseIp('198.51.100.1'), 'externalIp')).toBe('is not within --external-ip-cidrs');
    expect(listed.refusal(parseIp('2001:db8::1'), 'externalIp')).toBe('is not within --external-ip-cidrs');
    expect(listed.refusal(parseIp('192.168.1.1'), 'externalIp')).toBe('is an address of this node');
  });

  it('says nothing about load-balancer VIPs', () => {
    expect(listed.refusal(parseIp('198.51.100.1'), 'loadBalancerVip')).toBeUndefined();
  });
});

it('knows its equals, whatever the order of what it was made of', () => {
  const [a, b] = ['192.0.2.1', '192.0.2.2'].map(parseIp) as [ReturnType<typeof parseIp>, ReturnType<typeof parseIp>];
  expect(rules({ ownAddresses: [a, b] }).equals(rules({ ownAddresses: [b, a] }))).toBe(true);
  expect(rules({ ownAddresses: [a, b] }).equals(rules({ ownAddresses: [a] }))).toBe(false);
  expect(rules({ apiServer: a }).equals(rules({ ownAddresses: [a] }))).toBe(false);
  expect(rules({ externalIpCidrs: [parseCidr('10.0.0.0/8')] }).equals(rules())).toBe(false);
});

it('refuse what stands in for localhost', () => {
  for (const kind of ['externalIp', 'loadBalancerVip'] as const) {
    expect(rules().refusal(parseIp('192.0.0.127'), kind)).toBe('is what stands in for localhost');
    expect(rules().refusal(parseIp('fd02:de25:5500::1'), kind)).toBe('is what stands in for localhost');
  }
});

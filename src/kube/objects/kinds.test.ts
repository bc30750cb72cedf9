import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatFieldPath } from './field-reader.ts';
import { decodeObject } from './kind.ts';
import { KINDS } from './kinds.ts';
import type { KubeKind } from './types.ts';

const SERVICE = {
  metadata: {
    name: 'web',
    namespace: 'demo',
    uid: '8f4c',
    creationTimestamp: null,
    labels: { app: 'web', 'service.kubernetes.io/service-proxy-name': '' },
    annotations: { note: 'x', 'nodeplane.io/ipvs-scheduler': 'sh' },
  },
  spec: {
    type: 'LoadBalancer',
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10', 'fd00::10'],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'PreferDualStack',
    selector: { app: 'web' },
    ports: [
      { name: 'http', port: 80, targetPort: 'http', nodePort: 30080, appProtocol: 'http' },
      { name: 'dns', protocol: 'UDP', port: 53, nodePort: 0 },
    ],
    externalIPs: ['192.0.2.7', 'not an address'],
    loadBalancerSourceRanges: [' 10.0.0.0/8', 'nonsense'],
    externalTrafficPolicy: 'Local',
    internalTrafficPolicy: 'Cluster',
    sessionAffinity: 'ClientIP',
    sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
    healthCheckNodePort: 31000,
  },
  status: { loadBalancer: { ingress: [{ ip: '192.0.2.8', ipMode: 'VIP', hostname: '' }, { hostname: 'lb.example' }] } },
};

const SLICE = {
  metadata: { name: 'web-x1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv6',
  endpoints: [
    {
      addresses: ['fd00::5'],
      conditions: { ready: false, serving: true, terminating: true },
      nodeName: 'node-a',
      zone: 'z1',
      targetRef: { kind: 'Pod', name: 'web-1', uid: '8a' },
      hints: { forZones: [{ name: 'z1' }], forNodes: [{ name: 'node-a' }] },
    },
  ],
  ports: [{ name: '', protocol: 'SCTP', port: 8080 }, { name: 'any-port' }],
};

const NODE = {
  metadata: { name: 'node-a.example', namespace: 'ignored', uid: '1f0a', resourceVersion: '7' },
  spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24'], taints: [{ key: 'k', effect: 'NoSchedule' }] },
  status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }], capacity: { cpu: 4 } },
};

const BLOCK = {
  metadata: { name: '10-244-0-64-26', uid: '2c', resourceVersion: '41', labels: { 'nodeplane.io/node-hash': '9f' } },
  spec: {
    cidr: '10.244.0.64/26',
    node: 'node-a.example',
    state: 'pending',
    nodeUID: '1f0a',
    holder: 'b7',
    claimedAt: '2026-11-22T10:00:00Z',
  },
};

const SERVICE_CIDR = { metadata: { name: 'kubernetes' }, spec: { cidrs: ['10.96.0.0/16', 'fd00:1::/108'] } };

describe('valid objects', () => {
  it('keeps exactly the known fields of a Service', () => {
    expect(decodeObject(KINDS.Service, SERVICE)).toEqual({
      object: {
        kind: 'Service',
        metadata: {
          name: 'web',
          namespace: 'demo',
          labels: { 'service.kubernetes.io/service-proxy-name': '' },
          annotations: { 'nodeplane.io/ipvs-scheduler': 'sh' },
        },
        spec: {
          type: 'LoadBalancer',
          clusterIP: '10.96.0.10',
          clusterIPs: ['10.96.0.10', 'fd00::10'],
          ipFamilies: ['IPv4', 'IPv6'],
          ports: [
            { name: 'http', port: 80, nodePort: 30080 },
            { name: 'dns', protocol: 'UDP', port: 53, nodePort: 0 },
          ],
          externalIPs: ['192.0.2.7', 'not an address'],
          loadBalancerSourceRanges: [' 10.0.0.0/8', 'nonsense'],
          externalTrafficPolicy: 'Local',
          internalTrafficPolicy: 'Cluster',
          sessionAffinity: 'ClientIP',
          sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } },
          healthCheckNodePort: 31000,
        },
        status: { loadBalancer: { ingress: [{ ip: '192.0.2.8', ipMode: 'VIP' }, {}] } },
      },
    });
  });

  it('keeps exactly the known fields of an EndpointSlice and puts it into the default namespace', () => {
    expect(decodeObject(KINDS.EndpointSlice, SLICE)).toEqual({
      object: {
        kind: 'EndpointSlice',
        metadata: { name: 'web-x1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv6',
        endpoints: [
          {
            addresses: ['fd00::5'],
            conditions: { ready: false, serving: true, terminating: true },
            nodeName: 'node-a',
            targetRef: 'web-1',
            hints: { forZones: [{ name: 'z1' }], forNodes: [{ name: 'node-a' }] },
          },
        ],
        ports: [{ name: '', protocol: 'SCTP', port: 8080 }, { name: 'any-port' }],
      },
    });
  });

  it('gives cluster-scoped objects the empty namespace', () => {
    expect(decodeObject(KINDS.Node, NODE)).toEqual({
      object: {
        kind: 'Node',
        metadata: { name: 'node-a.example', namespace: '', uid: '1f0a' },
        spec: NODE.spec,
        status: { addresses: [{ type: 'InternalIP', address: '192.0.2.1' }] },
      },
    });
    expect(decodeObject(KINDS.ServiceCIDR, SERVICE_CIDR)).toEqual({
      object: { kind: 'ServiceCIDR', metadata: { name: 'kubernetes', namespace: '' }, spec: SERVICE_CIDR.spec },
    });
  });

  it('keeps of a PodCIDRBlock what a compare-and-swap needs', () => {
    const { claimedAt, ...spec } = BLOCK.spec;
    expect(decodeObject(KINDS.PodCIDRBlock, BLOCK)).toEqual({
      object: {
        kind: 'PodCIDRBlock',
        metadata: { name: '10-244-0-64-26', namespace: '', uid: '2c', resourceVersion: '41', labels: {} },
        spec,
      },
    });
  });

  it.each(['', 'None', '10.0.0.1', 'fd00::1'])('takes "%s" as a clusterIP', (clusterIP) => {
    const value = { metadata: { name: 'a' }, spec: { clusterIP, clusterIPs: [clusterIP] } };
    expect(decodeObject(KINDS.Service, value).object).toMatchObject({ spec: { clusterIP, clusterIPs: [clusterIP] } });
  });

  it('takes any text as an address of type FQDN', () => {
    const value = { metadata: { name: 'a' }, addressType: 'FQDN', endpoints: [{ addresses: ['db.example'] }] };
    expect(decodeObject(KINDS.EndpointSlice, value).object).toMatchObject({
      endpoints: [{ addresses: ['db.example'] }],
    });
  });

  it('takes null for a missing field', () => {
    const value = { metadata: { name: 'a', namespace: null, labels: null }, spec: { ports: null } };
    expect(decodeObject(KINDS.Service, value)).toEqual({
      object: { kind: 'Service', metadata: { name: 'a', namespace: 'default' }, spec: {} },
    });
  });

  it('keeps the labels and annotations that are read, of however many', () => {
    const labels = JSON.parse('{"__proto__": "x", "kubernetes.io/service-name": "web"}');
    const annotations = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`k${n}`, 'v']));
    const value = { metadata: { name: 'a', labels, annotations }, spec: {} };
    expect(decodeObject(KINDS.Service, value).object?.metadata).toEqual({
      name: 'a',
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'web' },
      annotations: {},
    });
  });
});

/** A copy of `value` with the field at `path` replaced; undefined removes it. */
function withField(value: unknown, path: readonly (string | number)[], replacement: unknown): unknown {
  const copy = structuredClone(value) as Record<string | number, unknown>;
  let parent = copy;
  for (const key of path.slice(0, -1)) parent = parent[key] as Record<string | number, unknown>;
  parent[path.at(-1)!] = replacement;
  return copy;
}

type BadField = readonly [kind: KubeKind, path: readonly (string | number)[], value: unknown, message: string];

describe('problems', () => {
  const base = { Service: SERVICE, EndpointSlice: SLICE, Node: NODE, ServiceCIDR: SERVICE_CIDR, PodCIDRBlock: BLOCK };

  it.each<BadField>([
    ['Service', ['metadata', 'name'], undefined, 'Required, but missing'],
    ['Service', ['metadata', 'name'], '', 'found ""'],
    ['Service', ['metadata', 'name'], 'a/b', 'found "a/b"'],
    ['Service', ['metadata', 'name'], 'a"b', 'found "a\\"b"'],
    ['Service', ['metadata', 'name'], 'a'.repeat(254), `found "${'a'.repeat(60)}…"`],
    ['Service', ['metadata', 'namespace'], 'Demo', 'found "Demo"'],
    ['Service', ['metadata', 'labels', 'app'], true, 'Expected text, found true; put it in quotes'],
    ['Service', ['metadata', 'annotations'], ['x'], 'Expected a mapping, found a list'],
    ['Service', ['spec'], undefined, 'Required, but missing'],
    ['Service', ['spec', 'type'], 'Cluster', 'Expected one of "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"'],
    ['Service', ['spec', 'clusterIP'], '10.96.0.256', 'Expected an IP address or "None", found "10.96.0.256"'],
    ['Service', ['spec', 'clusterIPs', 1], 'none', 'Expected an IP address or "None", found "none"'],
    ['Service', ['spec', 'ipFamilies', 0], 'ipv4', 'Expected one of "IPv4", "IPv6", found "ipv4"'],
    ['Service', ['spec', 'ports'], { port: 80 }, 'Expected a list, found a mapping'],
    ['Service', ['spec', 'ports', 0], null, 'Expected a mapping, found null'],
    ['Service', ['spec', 'ports', 0, 'port'], undefined, 'Required, but missing'],
    ['Service', ['spec', 'ports', 0, 'port'], 0, 'Expected a port number from 1 to 65535, found 0'],
    ['Service', ['spec', 'ports', 0, 'port'], 65536, 'found 65536'],
    ['Service', ['spec', 'ports', 0, 'port'], 80.5, 'found 80.5'],
    ['Service', ['spec', 'ports', 0, 'port'], '80', 'found "80"'],
    ['Service', ['spec', 'ports', 0, 'nodePort'], 65536, 'found 65536'],
    ['Service', ['spec', 'ports', 0, 'nodePort'], -1, 'found -1'],
    ['Service', ['spec', 'ports', 0, 'protocol'], 'tcp', 'Expected one of "TCP", "UDP", "SCTP", found "tcp"'],
    ['Service', ['spec', 'ports', 0, 'name'], 'http_1', 'found "http_1"'],
    ['Service', ['spec', 'ports', 1, 'name'], undefined, 'Required when a Service has more than one port'],
    ['Service', ['spec', 'ports', 1, 'name'], 'http', 'Another port of this Service is already named "http"'],
    ['Service', ['spec', 'externalIPs', 0], 7, 'Expected text, found 7'],
    ['Service', ['spec', 'externalTrafficPolicy'], 'local', 'found "local"'],
    ['Service', ['spec', 'sessionAffinity'], 'Cookie', 'found "Cookie"'],
    ['Service', ['spec', 'sessionAffinityConfig', 'clientIP', 'timeoutSeconds'], 0, 'from 1 to 86400, found 0'],
    ['Service', ['status', 'loadBalancer', 'ingress', 0, 'ip'], 'x', 'Expected an IP address, found "x"'],
    ['Service', ['status', 'loadBalancer', 'ingress', 0, 'ipMode'], 'vip', 'found "vip"'],
    ['EndpointSlice', ['addressType'], undefined, 'Required, but missing'],
    ['EndpointSlice', ['addressType'], 'IP', 'Expected one of "IPv4", "IPv6", "FQDN", found "IP"'],
    ['EndpointSlice', ['endpoints', 0, 'addresses', 0], '10.0.0.1', 'Expected an IPv6 address, found "10.0.0.1"'],
    ['EndpointSlice', ['endpoints', 0, 'conditions', 'ready'], 'yes', 'Expected true or false, found "yes"'],
    ['EndpointSlice', ['endpoints', 0, 'hints', 'forZones', 0, 'name'], undefined, 'Required, but missing'],
    ['EndpointSlice', ['ports', 0, 'port'], 0, 'found 0'],
    ['Node', ['spec', 'podCIDRs', 0], '10.244.1.0', 'Expected a CIDR such as "10.244.0.0/24", found "10.244.1.0"'],
    ['Node', ['spec', 'taints', 0, 'key'], undefined, 'Required, but missing'],
    ['Node', ['status', 'addresses', 0, 'address'], undefined, 'Required, but missing'],
    ['ServiceCIDR', ['spec', 'cidrs', 1], 'fd00::/129', 'found "fd00::/129"'],
    ['PodCIDRBlock', ['spec'], undefined, 'Required, but missing'],
    ['PodCIDRBlock', ['spec', 'cidr'], '10.244.0.64', 'Expected a CIDR such as "10.244.0.0/24", found "10.244.0.64"'],
    ['PodCIDRBlock', ['spec', 'node'], 'Node A', 'found "Node A"'],
    ['PodCIDRBlock', ['spec', 'state'], 'Pending', 'Expected one of "pending", "confirmed", "releasing"'],
    ['PodCIDRBlock', ['metadata', 'resourceVersion'], 41, 'Expected text, found 41; put it in quotes'],
  ])('%s %j = %j', (kind, path, value, message) => {
    const problems = decodeObject(KINDS[kind], withField(base[kind], path, value)).problems ?? [];
    expect(problems).toHaveLength(1);
    expect(problems[0]!.path).toEqual(path);
    expect(problems[0]!.message).toContain(message);
  });

  it('reports two ports with the same number and protocol', () => {
    const sameNumber = withField(SERVICE, ['spec', 'ports', 1, 'port'], 80);
    expect(decodeObject(KINDS.Service, sameNumber).problems).toBeUndefined();
    const same = withField(sameNumber, ['spec', 'ports', 1, 'protocol'], 'TCP');
    expect(decodeObject(KINDS.Service, same).problems).toEqual([
      { path: ['spec', 'ports', 1, 'port'], message: 'Another port of this Service is already 80/TCP' },
    ]);
  });

  it('collects all problems of an object in the order of its fields', () => {
    const value = {
      metadata: { namespace: 'a/b' },
      spec: { clusterIP: 'x', ports: [{ port: 1 }, { port: 0, protocol: 'ICMP' }] },
    };
    const fields = decodeObject(KINDS.Service, value).problems?.map(({ path }) => formatFieldPath(path));
    expect(fields).toEqual([
      'metadata.name',
      'metadata.namespace',
      'spec.clusterIP',
      'spec.ports[1].protocol',
      'spec.ports[1].port',
    ]);
  });

  it.each([null, undefined, 7, 'x', [], true])('refuses %j as an object', (value) => {
    expect(decodeObject(KINDS.Service, value).problems).toHaveLength(1);
  });
});

describe('any data', () => {
  const kinds = fc.constantFrom<KubeKind>('Service', 'EndpointSlice', 'Node', 'ServiceCIDR', 'PodCIDRBlock');

  it('gives an object or problems, never a throw', () => {
    fc.assert(
      fc.property(kinds, fc.jsonValue(), (kind, value) => {
        const { object, problems = [] } = decodeObject(KINDS[kind], value);
        expect(object === undefined).toBe(problems.length > 0);
      }),
    );
  });

  it('gives an object or a problem at the place of the damage when one field of a valid object is anything', () => {
    const examples: readonly (readonly [KubeKind, unknown])[] = [
      ['Service', SERVICE],
      ['EndpointSlice', SLICE],
      ['Node', NODE],
      ['ServiceCIDR', SERVICE_CIDR],
    ];
    const places = examples.flatMap(([kind, value]) => pathsOf(value).map((path) => ({ kind, value, path })));
    fc.assert(
      fc.property(fc.constantFrom(...places), fc.jsonValue(), ({ kind, value, path }, damage) => {
        const { object, problems = [] } = decodeObject(KINDS[kind], withField(value, path, damage));
        expect(object === undefined).toBe(problems.length > 0);
        for (const problem of problems) expect(problem.path.slice(0, path.length)).toEqual(path);
      }),
      { numRuns: 500 },
    );
  });
});

function pathsOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [path];
  const isList = Array.isArray(value);
  const below = Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, isList ? Number(key) : key]));
  return path.length > 0 ? [path, ...below] : below;
}

it('formats field paths as kubectl prints them', () => {
  expect(formatFieldPath([])).toBe('');
  expect(formatFieldPath(['items', 3, 'spec', 'ports', 0, 'port'])).toBe('items[3].spec.ports[0].port');
  expect(formatFieldPath(['metadata', 'labels', 'a.b/c'])).toBe('metadata.labels["a.b/c"]');
});

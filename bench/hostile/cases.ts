import type { IpFamily } from '../../src/core/index.ts';
import type { EndpointSlice, Service, ServicePortSpec, ServiceSpec } from '../../src/kube/index.ts';
import { makeService, makeSlice, type ServiceParts, type SliceOptions } from '../../test/fakes/service-objects.ts';

/** What somebody with rights on the Services and EndpointSlices of one namespace may create. */
export interface HostileCase {
  readonly name: string;
  objects(family: IpFamily): (Service | EndpointSlice)[];
  /** Not one object that does harm but as many as a large cluster has: the bound of memory does not hold. @default false */
  readonly wholeCluster?: boolean;
}

const NAME = 'hostile';

/** The API server takes requests of 3 MiB, and etcd objects of 1.5 MiB in the shorter form of protobuf. */
export const CASES: readonly HostileCase[] = [
  {
    name: '10,000 ports',
    objects: (family) => [service(family, { ports: ports(10_000) }), slice(family, { ports: ports(10_000) })],
  },
  {
    name: '10,000 ports, an external IP and a VIP each',
    objects: (family) => [
      service(
        family,
        { ports: ports(10_000), externalIPs: [address(family, 1, 1)] },
        { vips: [address(family, 2, 1)] },
      ),
      slice(family, { ports: ports(10_000) }),
    ],
  },
  {
    name: '20,000 external IPs',
    objects: (family) => [service(family, { externalIPs: addresses(family, 20_000) }), slice(family)],
  },
  {
    name: '20,000 external IPs, UDP, 1,000 endpoints',
    objects: (family) => [
      service(family, { externalIPs: addresses(family, 20_000), ports: [{ name: 'http', protocol: 'UDP', port: 80 }] }),
      slice(family, { addresses: addresses(family, 1000), ports: [{ name: 'http', protocol: 'UDP', port: 80 }] }),
    ],
  },
  {
    name: '8,000 disjoint source ranges',
    objects: (family) => [
      restricted(
        family,
        addresses(family, 8000).map((text, n) => `${text}/${bits(family) - (n % 3)}`),
      ),
      slice(family),
    ],
  },
  {
    name: '8,000 nested source ranges',
    objects: (family) => [restricted(family, nestedRanges(family, 8000)), slice(family)],
  },
  {
    name: '8,000 equal source ranges',
    objects: (family) => [
      restricted(
        family,
        Array.from({ length: 8000 }, () => `${address(family, 1, 1)}/${bits(family)}`),
      ),
      slice(family),
    ],
  },
  {
    name: '8,000 source ranges, 100 ports',
    objects: (family) => [
      restricted(
        family,
        addresses(family, 8000).map((text) => `${text}/${bits(family)}`),
        { ports: ports(100) },
      ),
      slice(family, { ports: ports(100) }),
    ],
  },
  {
    name: '1,000 slices of 100 endpoints',
    objects: (family) => [
      service(family),
      ...Array.from({ length: 1000 }, (_, n) =>
        slice(family, { suffix: String(n), addresses: addresses(family, 100, n * 100) }),
      ),
    ],
  },
  {
    name: '1,000 endpoints x 1,500 ports the Service has not',
    objects: (family) => [service(family), slice(family, { addresses: addresses(family, 1000), ports: ports(1500) })],
  },
  {
    name: '1,000 endpoints x 100 ports',
    objects: (family) => [
      service(family, { ports: ports(100) }),
      slice(family, { addresses: addresses(family, 1000), ports: ports(100) }),
    ],
  },
  {
    name: '1,000 endpoints, ClientIP affinity',
    objects: (family) => [
      service(family, { sessionAffinity: 'ClientIP', externalIPs: addresses(family, 100) }),
      slice(family, { addresses: addresses(family, 1000) }),
    ],
  },
  {
    name: '2,000 ports, ClientIP affinity',
    objects: (family) => [
      service(family, { sessionAffinity: 'ClientIP', ports: ports(2000) }),
      slice(family, { ports: ports(2000) }),
    ],
  },
  {
    name: '256 KiB of annotations, small ones',
    objects: (family) => [service(family, {}, { annotations: manyTexts(40_000) }), slice(family)],
  },
  {
    name: '1.4 MiB of labels',
    objects: (family) => [service(family, {}, { labels: manyTexts(130_000) }), slice(family)],
  },
  {
    name: '5,000 Services with one external IP and port',
    objects: (family) =>
      Array.from({ length: 5000 }, (_, n) => [
        service(family, { externalIPs: [address(family, 1, 1)] }, { name: `claimant-${n}`, clusterIp: 16 + n }),
        slice(family, { name: `claimant-${n}` }),
      ]).flat(),
  },
  {
    name: '10,000 Services of ten endpoints',
    wholeCluster: true,
    objects: (family) =>
      Array.from({ length: 10_000 }, (_, n) => [
        service(family, {}, { name: `service-${n}`, clusterIp: 16 + n }),
        slice(family, { name: `service-${n}`, addresses: addresses(family, 10, n * 10) }),
      ]).flat(),
  },
  {
    name: 'the longest names',
    objects: (family) => {
      const name = `s${'x'.repeat(62)}`;
      const port = `${'y'.repeat(62)}z`;
      return Array.from({ length: 500 }, (_, n) => {
        const own = `${name.slice(0, 58)}${n}`;
        const namespace = 'n'.repeat(63);
        return [
          service(family, { ports: [{ name: port, port: 80 }] }, { name: own, namespace, clusterIp: 16 + n }),
          slice(family, { name: own, namespace, ports: [{ name: port, port: 80 }] }),
        ];
      }).flat();
    },
  },
];

interface Named {
  /** @default hostile */
  readonly name?: string;
  /** @default hostile */
  readonly namespace?: string;
}

interface HostileService extends Named, ServiceParts {
  /** Number of the ClusterIP. @default 5 */
  readonly clusterIp?: number;
}

function service(family: IpFamily, spec: Partial<ServiceSpec> = {}, parts: HostileService = {}): Service {
  const { name = NAME, namespace = NAME, clusterIp = 5, ...more } = parts;
  const ip = address(family, 0, clusterIp);
  const whole: ServiceSpec = {
    type: 'LoadBalancer',
    clusterIP: ip,
    clusterIPs: [ip],
    ipFamilies: [family],
    ports: [{ name: 'http', protocol: 'TCP', port: 80 }],
    ...spec,
  };
  return makeService(`${namespace}/${name}`, whole, { vips: [], ...more });
}

/** With a load-balancer address that only some may use. */
function restricted(family: IpFamily, ranges: readonly string[], spec: Partial<ServiceSpec> = {}): Service {
  return service(family, { loadBalancerSourceRanges: ranges, ...spec }, { vips: [address(family, 2, 1)] });
}

interface HostileSlice extends Named, Pick<SliceOptions, 'suffix' | 'ports'> {
  /** @default one */
  readonly addresses?: readonly string[];
}

function slice(addressType: IpFamily, parts: HostileSlice = {}): EndpointSlice {
  const { name = NAME, namespace = NAME, suffix = 'a', ports: slicePorts = [{ name: 'http', port: 8080 }] } = parts;
  const endpoints = (parts.addresses ?? [address(addressType, 3, 1)]).map((each, n) => ({
    addresses: [each],
    conditions: { ready: true },
    nodeName: n % 2 === 0 ? 'node-1' : 'node-2',
  }));
  return makeSlice(`${namespace}/${name}`, endpoints, { suffix, addressType, ports: slicePorts });
}

function ports(count: number): ServicePortSpec[] {
  return Array.from({ length: count }, (_, n) => ({ name: `p${n}`, protocol: 'TCP', port: n + 1 }));
}

function manyTexts(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n.toString(36)}`, 'v']));
}

/** Each range holds the next ones: blocks of all lengths down to single addresses. */
function nestedRanges(family: IpFamily, count: number): string[] {
  const shortest = bits(family) - 16;
  return Array.from({ length: count }, (_, n) => `${address(family, 1, n >> 3)}/${shortest + (n % 17)}`);
}

function bits(family: IpFamily): number {
  return family === 'IPv4' ? 32 : 128;
}

function addresses(family: IpFamily, count: number, first = 0): string[] {
  return Array.from({ length: count }, (_, n) => address(family, 4, (first + n) * 4));
}

/** Number `n` of the addresses of a kind. */
function address(family: IpFamily, kind: number, n: number): string {
  const v4 = `${kind === 0 ? 10 : 160 + kind * 4 + (n >> 24)}.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
  return family === 'IPv4' ? v4 : `2001:db8:${kind}::${(n >> 16).toString(16)}:${(n & 0xffff).toString(16)}`;
}

import {
  type EndpointSlice,
  type LoadBalancerIngress,
  type Node,
  type ObjectMeta,
  SERVICE_NAME_LABEL,
  type Service,
  type ServiceCIDR,
  type ServiceSpec,
  type SliceEndpoint,
  type SlicePort,
} from '../../src/kube/index.ts';
import type { ServiceStore } from '../../src/proxy/index.ts';

// Kubernetes objects in few words, for tests and benchmarks of the proxy.

/** What a Service may have besides its spec. */
export interface ServiceParts extends Pick<ObjectMeta, 'labels' | 'annotations' | 'creationTimestamp'> {
  /** Its load-balancer VIPs; one may be given by its address alone. @default no status at all */
  readonly vips?: readonly (string | LoadBalancerIngress)[];
}

/** A Service `name` (`namespace/name`) with a ClusterIP of its own and one unnamed TCP port 80, unless `spec` says otherwise. */
export function makeService(name: string, spec: Partial<ServiceSpec> = {}, parts: ServiceParts = {}): Service {
  const { vips, ...more } = parts;
  return {
    kind: 'Service',
    metadata: { ...metadata(name), ...more },
    spec: { clusterIP: clusterIpOf(name), ports: [{ port: 80 }], ...spec },
    ...(vips && {
      status: { loadBalancer: { ingress: vips.map((vip) => (typeof vip === 'string' ? { ip: vip } : vip)) } },
    }),
  };
}

/** 10.96.0.10 for the names in most tests, else an address made of the name: two Services seldom have the same. */
function clusterIpOf(name: string): string {
  if (name === 'shop/web') return '10.96.0.10';
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.charCodeAt(0)) % 2 ** 24;
  return `10.${hash >> 16}.${(hash >> 8) & 255}.${hash & 255}`;
}

export interface SliceOptions {
  /** Distinguishes the slices of a Service. @default 'a', of IPv6 'v6' */
  readonly suffix?: string;
  /** @default IPv4 */
  readonly addressType?: EndpointSlice['addressType'];
  /** @default one unnamed TCP port 8080 */
  readonly ports?: readonly SlicePort[];
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A slice of the Service `serviceName` (`namespace/name`); an endpoint may be given by its address alone. */
export function makeSlice(
  serviceName: string,
  endpoints: readonly (string | SliceEndpoint)[],
  options: SliceOptions = {},
): EndpointSlice {
  const { addressType = 'IPv4', ports = [{ port: 8080 }], annotations } = options;
  const { suffix = addressType === 'IPv6' ? 'v6' : 'a' } = options;
  const { name, namespace } = metadata(serviceName);
  return {
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${suffix}`,
      namespace,
      labels: { [SERVICE_NAME_LABEL]: name },
      ...(annotations && { annotations }),
    },
    addressType,
    ports,
    endpoints: endpoints.map((endpoint) => (typeof endpoint === 'string' ? { addresses: [endpoint] } : endpoint)),
  };
}

export function makeNode(
  name: string,
  parts: Partial<Node> & { labels?: Readonly<Record<string, string>> } = {},
): Node {
  const { labels = {}, ...rest } = parts;
  return { kind: 'Node', metadata: { name, namespace: '', labels }, ...rest };
}

function metadata(name: string): ObjectMeta {
  const [namespace = '', own = ''] = name.split('/');
  return { name: own, namespace };
}

/** A store to fill by hand, which counts how often it is asked. */
export class FakeServiceStore implements ServiceStore {
  readonly services = new Map<string, Service>();
  readonly slicesByService = new Map<string, readonly EndpointSlice[]>();
  readonly nodesByName = new Map<string, Node>();
  readonly cidrs: ServiceCIDR[] = [];
  /** Objects handed out, names in a listing included. */
  reads = 0;

  /** A Service and its only slice, in place of those it had. */
  put(name: string, endpoints: readonly string[] = ['10.0.0.1'], spec: Partial<ServiceSpec> = {}): void {
    this.services.set(name, makeService(name, spec));
    this.slicesByService.set(name, [makeSlice(name, endpoints)]);
  }

  service(name: string): Service | undefined {
    this.reads++;
    return this.services.get(name);
  }

  slices(serviceName: string): readonly EndpointSlice[] {
    this.reads++;
    return this.slicesByService.get(serviceName) ?? [];
  }

  serviceNames(): readonly string[] {
    this.reads += this.services.size;
    return [...this.services.keys()];
  }

  node(name: string): Node | undefined {
    this.reads++;
    return this.nodesByName.get(name);
  }

  nodes(): Iterable<Node> {
    this.reads += this.nodesByName.size;
    return this.nodesByName.values();
  }

  serviceCidrs(): readonly ServiceCIDR[] {
    return this.cidrs;
  }
}

import type {
  EndpointSlice,
  Node,
  ObjectMeta,
  Service,
  ServiceCIDR,
  ServiceSpec,
  SliceEndpoint,
  SlicePort,
} from '../../src/kube/index.ts';
import type { ServiceStore } from '../../src/proxy/index.ts';

// Kubernetes objects in few words, for tests of the proxy.

/** A Service `name` (`namespace/name`) with a ClusterIP of its own and one unnamed TCP port 80, unless `spec` says otherwise. */
export function makeService(name: string, spec: Partial<ServiceSpec> = {}, status?: Service['status']): Service {
  const service = {
    kind: 'Service',
    metadata: metadata(name),
    spec: { clusterIP: clusterIpOf(name), ports: [{ port: 80 }], ...spec },
  } as const;
  return status ? { ...service, status } : service;
}

/** 10.96.0.10 for the names in most tests, else an address made of the name: two Services seldom have the same. */
function clusterIpOf(name: string): string {
  if (name === 'shop/web') return '10.96.0.10';
  let hash = 0;
  for (const char of name) hash = (hash * 31 + char.charCodeAt(0)) % 2 ** 24;
  return `10.${hash >> 16}.${(hash >> 8) & 255}.${hash & 255}`;
}

export interface SliceOptions {
  /** Distinguishes the slices of a Service. @default 'a' */
  readonly suffix?: string;
  readonly addressType?: EndpointSlice['addressType'];
  /** @default one unnamed TCP port 8080 */
  readonly ports?: readonly SlicePort[];
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A slice of a Service; an endpoint may be given by its address alone. */
export function makeSlice(
  serviceName: string,
  endpoints: readonly (string | SliceEndpoint)[],
  { suffix = 'a', addressType = 'IPv4', ports = [{ port: 8080 }], annotations = {} }: SliceOptions = {},
): EndpointSlice {
  return {
    kind: 'EndpointSlice',
    metadata: { ...metadata(`${serviceName}-${suffix}`), annotations },
    addressType,
    endpoints: endpoints.map((endpoint) => (typeof endpoint === 'string' ? { addresses: [endpoint] } : endpoint)),
    ports,
  };
}

export function makeNode(name: string, parts: Partial<Node> & { labels?: Record<string, string> } = {}): Node {
  const { labels = {}, ...rest } = parts;
  return { kind: 'Node', metadata: { name, namespace: '', labels }, ...rest };
}

function metadata(name: string): ObjectMeta {
  const [namespace = '', own = ''] = name.split('/');
  return { namespace, name: own };
}

/** A store to fill by hand, which counts how often it is asked. */
export class FakeServiceStore implements ServiceStore {
  readonly services = new Map<string, Service>();
  readonly slicesByService = new Map<string, readonly EndpointSlice[]>();
  readonly nodesByName = new Map<string, Node>();
  readonly cidrs: ServiceCIDR[] = [];
  /** Objects handed out, names in a listing included. */
  reads = 0;

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

import { isSelected, serviceOfSlice } from './objects/selectors.ts';
import {
  type EndpointSlice,
  type KubeObject,
  type Node,
  objectName,
  type Service,
  type ServiceCIDR,
} from './objects/types.ts';
import type { ObjectEvent } from './source.ts';

/** What an event may have changed for the proxy. */
export interface Touched {
  /** Services (`namespace/name`) that changed themselves or in their slices. */
  readonly services: readonly string[];
  /** The Node that changed. */
  readonly node: string | undefined;
  readonly serviceCidrs: boolean;
}

const NOTHING: Touched = { services: [], node: undefined, serviceCidrs: false };

/**
 * The objects the proxy works from, as a source last told them. Only selected objects (see selectors.ts) are held: an
 * update that makes an object unselected acts as its deletion. The cost of an event does not depend on the number of objects.
 */
export class ObjectStore {
  readonly #serviceProxyName: string;
  readonly #services = new Map<string, Service>();
  /** All slices by their own `namespace/name`. */
  readonly #slices = new Map<string, EndpointSlice>();
  /** Their names by Service; no empty sets. */
  readonly #sliceNames = new Map<string, Set<string>>();
  readonly #nodes = new Map<string, Node>();
  readonly #serviceCidrs = new Map<string, ServiceCIDR>();

  /** @param serviceProxyName see `isSelected` */
  constructor(serviceProxyName = '') {
    this.#serviceProxyName = serviceProxyName;
  }

  apply(event: ObjectEvent): Touched {
    const { object } = event;
    const present = event.type !== 'deleted' && isSelected(object, this.#serviceProxyName);
    switch (object.kind) {
      case 'Service':
        return put(this.#services, object, present) ? { ...NOTHING, services: [objectName(object)] } : NOTHING;
      case 'EndpointSlice':
        return this.#applySlice(object, present);
      case 'Node':
        return put(this.#nodes, object, present) ? { ...NOTHING, node: object.metadata.name } : NOTHING;
      case 'ServiceCIDR':
        return put(this.#serviceCidrs, object, present) ? { ...NOTHING, serviceCidrs: true } : NOTHING;
    }
  }

  service(name: string): Service | undefined {
    return this.#services.get(name);
  }

  /** The slices of a Service, known or not, sorted by name. */
  slices(serviceName: string): readonly EndpointSlice[] {
    const names = [...(this.#sliceNames.get(serviceName) ?? [])].sort();
    return names.map((name) => this.#slices.get(name)!);
  }

  node(name: string): Node | undefined {
    return this.#nodes.get(name);
  }

  nodes(): Iterable<Node> {
    return this.#nodes.values();
  }

  /** Sorted by name. */
  serviceCidrs(): readonly ServiceCIDR[] {
    return [...this.#serviceCidrs.values()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
  }

  /** The names of all Services; those that only have slices are not among them. */
  serviceNames(): Iterable<string> {
    return this.#services.keys();
  }

  /** A slice may be relabelled from one Service to another: then both are touched (kube-proxy forgets the former). */
  #applySlice(slice: EndpointSlice, present: boolean): Touched {
    const name = objectName(slice);
    const former = this.#slices.get(name);
    const from = former && serviceOfSlice(former);
    const to = present ? serviceOfSlice(slice) : undefined;
    if (from !== undefined && from !== to) this.#unlink(from, name);
    // A slice that says no Service is of no use to anybody.
    put(this.#slices, slice, to !== undefined);
    if (to !== undefined) this.#link(to, name);
    const services = [...new Set([from, to])].filter((service) => service !== undefined);
    return { ...NOTHING, services };
  }

  #link(serviceName: string, sliceName: string): void {
    const names = this.#sliceNames.get(serviceName);
    if (names) names.add(sliceName);
    else this.#sliceNames.set(serviceName, new Set([sliceName]));
  }

  #unlink(serviceName: string, sliceName: string): void {
    const names = this.#sliceNames.get(serviceName);
    names?.delete(sliceName);
    if (names?.size === 0) this.#sliceNames.delete(serviceName);
  }
}

/** Sets or removes an object; false when it was not there and still is not. */
function put<T extends KubeObject>(objects: Map<string, T>, object: T, present: boolean): boolean {
  const name = objectName(object);
  if (!present) return objects.delete(name);
  objects.set(name, object);
  return true;
}

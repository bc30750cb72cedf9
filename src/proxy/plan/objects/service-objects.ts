import { compareText, insertSorted, removeSorted } from '../../../core/index.ts';
import {
  type EndpointSlice,
  type Node,
  type ObjectEvent,
  ObjectsOf,
  objectName,
  type Service,
  type ServiceCIDR,
} from '../../../kube/index.ts';
import { isForProxy, isOfService, serviceOfSlice } from './selectors.ts';
import type { ServiceStore } from './service-store.ts';

/** What an event may have changed for the proxy. */
export interface TouchedObjects {
  /** Services (`namespace/name`) that changed themselves or in their slices. */
  readonly services: readonly string[];
  /** The Node that changed. */
  readonly node: string | undefined;
  readonly serviceCidrs: boolean;
}

const NOTHING: TouchedObjects = { services: [], node: undefined, serviceCidrs: false };

/** The objects the proxy works from, as a source last told them: those that selectors.ts says are its business. */
export class ServiceObjects implements ServiceStore {
  readonly #services: ObjectsOf<'Service'>;
  readonly #slices = new ObjectsOf('EndpointSlice', isOfService);
  /** The names of the slices by Service, sorted; no empty lists. */
  readonly #sliceNames = new Map<string, string[]>();
  readonly #nodes = new ObjectsOf('Node');
  readonly #serviceCidrs = new ObjectsOf('ServiceCIDR');

  /** @param serviceProxyName see `isForProxy` */
  constructor(serviceProxyName = '') {
    this.#services = new ObjectsOf('Service', (service) => isForProxy(service, serviceProxyName));
  }

  apply(event: ObjectEvent): TouchedObjects {
    const { object } = event;
    switch (object.kind) {
      case 'Service': {
        const name = this.#services.apply(event);
        return name === undefined ? NOTHING : { ...NOTHING, services: [name] };
      }
      case 'EndpointSlice':
        return { ...NOTHING, services: this.#applySlice(event, object) };
      case 'Node':
        return { ...NOTHING, node: this.#nodes.apply(event) };
      case 'ServiceCIDR':
        return { ...NOTHING, serviceCidrs: this.#serviceCidrs.apply(event) !== undefined };
      case 'PodCIDRBlock':
        return NOTHING;
    }
  }

  service(name: string): Service | undefined {
    return this.#services.get(name);
  }

  /** The slices of a Service, known or not, sorted by name. */
  slices(serviceName: string): readonly EndpointSlice[] {
    const names = this.#sliceNames.get(serviceName) ?? [];
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
    return [...this.#serviceCidrs.values()].sort((a, b) => compareText(a.metadata.name, b.metadata.name));
  }

  /** The names of all Services; those that only have slices are not among them. */
  serviceNames(): Iterable<string> {
    return this.#services.names();
  }

  /** A slice may be relabelled from one Service to another: then both are touched (kube-proxy forgets the former). */
  #applySlice(event: ObjectEvent, slice: EndpointSlice): readonly string[] {
    const name = objectName(slice);
    const from = this.#serviceOf(name);
    this.#slices.apply(event);
    const to = this.#serviceOf(name);
    if (from !== undefined && from !== to) this.#unlink(from, name);
    if (to !== undefined) this.#link(to, name);
    if (from === to) return to === undefined ? [] : [to];
    return [from, to].filter((service) => service !== undefined);
  }

  /** The Service of the slice of this name as it is held now. */
  #serviceOf(sliceName: string): string | undefined {
    const slice = this.#slices.get(sliceName);
    return slice && serviceOfSlice(slice);
  }

  #link(serviceName: string, sliceName: string): void {
    const names = this.#sliceNames.get(serviceName);
    if (names) insertSorted(names, sliceName, compareText);
    else this.#sliceNames.set(serviceName, [sliceName]);
  }

  #unlink(serviceName: string, sliceName: string): void {
    const names = this.#sliceNames.get(serviceName) ?? [];
    removeSorted(names, sliceName, compareText);
    if (names.length === 0) this.#sliceNames.delete(serviceName);
  }
}

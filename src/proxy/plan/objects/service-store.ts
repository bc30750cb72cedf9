import type { EndpointSlice, Node, Service, ServiceCIDR } from '../../../kube/index.ts';

/** The objects the proxy plans from, by name. Every answer must cost the same however large the cluster is. */
export interface ServiceStore {
  /** @param name `namespace/name` */
  service(name: string): Service | undefined;
  /** The EndpointSlices whose label names the Service, of all address types. */
  slices(serviceName: string): readonly EndpointSlice[];
  serviceNames(): Iterable<string>;
  node(name: string): Node | undefined;
  /** All that are known: with an API server this node alone. */
  nodes(): Iterable<Node>;
  /** The few ranges ClusterIPs come from. */
  serviceCidrs(): readonly ServiceCIDR[];
}

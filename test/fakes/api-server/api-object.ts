/** An object as the API has it; the fake server reads its metadata only. */
export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ApiObjectMeta;
  readonly [field: string]: unknown;
}

export interface ApiObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly [field: string]: unknown;
}

/** A resource the server has. */
export interface ApiResource {
  /** As in paths and roles: `endpointslices`. */
  readonly name: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Its objects have a `status` that is written by itself. @default none has */
  readonly hasStatus?: boolean;
}

export const RESOURCES: readonly ApiResource[] = [
  { name: 'services', group: '', version: 'v1', kind: 'Service', namespaced: true },
  { name: 'endpoints', group: '', version: 'v1', kind: 'Endpoints', namespaced: true },
  { name: 'pods', group: '', version: 'v1', kind: 'Pod', namespaced: true },
  { name: 'nodes', group: '', version: 'v1', kind: 'Node', namespaced: false, hasStatus: true },
  { name: 'endpointslices', group: 'discovery.k8s.io', version: 'v1', kind: 'EndpointSlice', namespaced: true },
  { name: 'servicecidrs', group: 'networking.k8s.io', version: 'v1', kind: 'ServiceCIDR', namespaced: false },
  { name: 'events', group: 'events.k8s.io', version: 'v1', kind: 'Event', namespaced: true },
  {
    name: 'leases',
    group: 'coordination.k8s.io',
    version: 'v1',
    kind: 'Lease',
    namespaced: true,
  },
  // As deploy/crds defines it.
  {
    name: 'podcidrblocks',
    group: 'nodeplane.io',
    version: 'v1alpha1',
    kind: 'PodCIDRBlock',
    namespaced: false,
  },
];

export function apiVersionOf({ group, version }: ApiResource): string {
  return group === '' ? version : `${group}/${version}`;
}

export function resourceOfKind(kind: string): ApiResource {
  const resource = RESOURCES.find((candidate) => candidate.kind === kind);
  if (!resource) throw new Error(`The fake API server does not have objects of kind "${kind}"`);
  return resource;
}

/** `namespace/name`, or the bare name. */
export function keyOf({ metadata }: ApiObject): string {
  return metadata.namespace === undefined ? metadata.name : `${metadata.namespace}/${metadata.name}`;
}

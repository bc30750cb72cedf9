import { API_VERSIONS, decodeObject } from '../../objects/decode.ts';
import { type FieldProblem, isMapping } from '../../objects/field-reader.ts';
import { HEADLESS_LABEL, SERVICE_PROXY_NAME_LABEL } from '../../objects/known-names.ts';
import { HEADLESS_CLUSTER_IP } from '../../objects/selectors.ts';
import type { EndpointSlice, KubeKind, KubeObject } from '../../objects/types.ts';
import { slicesOfEndpoints } from './endpoints.ts';
import type { SharedValues } from './shared-values.ts';
import { slimSlice } from './slim.ts';

/** What an object of the API is to us: usually one object, or everything that is wrong with it. */
export type Projected =
  | { readonly objects: readonly KubeObject[]; readonly problems?: never }
  | { readonly objects?: never; readonly problems: readonly FieldProblem[] };

/** One thing to list and watch. */
export interface Resource {
  /** As the API names it: `services`. */
  readonly name: string;
  /** The kind of its objects in the API, for messages. */
  readonly kind: string;
  readonly path: string;
  /** Selectors; the server applies them. */
  readonly query: Readonly<Record<string, string>>;
  /** Older servers do not know it, and we can do without. */
  readonly optional?: boolean;
  /** Keeps only what types.ts names. Never throws. */
  project(value: unknown, shared: SharedValues): Projected;
}

/**
 * @param proxyName the value of the label service.kubernetes.io/service-proxy-name that makes a Service ours; without one
 *   the Services that do not carry the label are
 */
export function servicesResource(proxyName: string | undefined): Resource {
  const label = SERVICE_PROXY_NAME_LABEL;
  return {
    name: 'services',
    kind: 'Service',
    path: '/api/v1/services',
    query: {
      labelSelector: proxyName === undefined ? `!${label}` : `${label}=${proxyName}`,
      fieldSelector: `spec.clusterIP!=${HEADLESS_CLUSTER_IP}`,
    },
    project: (value) => projectAs('Service', value),
  };
}

export const SLICES: Resource = {
  name: 'endpointslices',
  kind: 'EndpointSlice',
  path: `/apis/${API_VERSIONS.EndpointSlice}/endpointslices`,
  query: { labelSelector: `!${HEADLESS_LABEL}` },
  project(value, shared) {
    const { object, problems } = decodeObject('EndpointSlice', value);
    return problems ? { problems } : { objects: [slimSlice(object as EndpointSlice, shared)] };
  },
};

/** Instead of EndpointSlices, from servers that do not have them. */
export const ENDPOINTS: Resource = {
  name: 'endpoints',
  kind: 'Endpoints',
  path: '/api/v1/endpoints',
  query: { labelSelector: `!${HEADLESS_LABEL}` },
  project(value, shared) {
    const objects: KubeObject[] = [];
    for (const slice of slicesOfEndpoints(value)) {
      const { objects: projected, problems } = SLICES.project(slice, shared);
      if (problems) return { problems };
      objects.push(...projected);
    }
    return { objects };
  },
};

/** The Node this process runs on, and no other. */
export function nodeResource(nodeName: string): Resource {
  return {
    name: 'nodes',
    kind: 'Node',
    path: '/api/v1/nodes',
    query: { fieldSelector: `metadata.name=${nodeName}` },
    project: (value) => projectAs('Node', value),
  };
}

/** Stable since Kubernetes 1.33. */
export const SERVICE_CIDRS: Resource = {
  name: 'servicecidrs',
  kind: 'ServiceCIDR',
  path: `/apis/${API_VERSIONS.ServiceCIDR}/servicecidrs`,
  query: {},
  optional: true,
  project: (value) => projectAs('ServiceCIDR', value),
};

function projectAs(kind: KubeKind, value: unknown): Projected {
  const { object, problems } = decodeObject(kind, value);
  return problems ? { problems } : { objects: [object] };
}

/** The name of an object of the API (`namespace/name`) and its version; undefined when it cannot be told from others. */
export function identityOf(value: unknown): { readonly name: string; readonly version: string } | undefined {
  const metadata = isMapping(value) ? value.metadata : undefined;
  if (!isMapping(metadata)) return undefined;
  const { name, namespace, resourceVersion } = metadata;
  if (typeof name !== 'string' || name === '') return undefined;
  const prefix = typeof namespace === 'string' && namespace !== '' ? `${namespace}/` : '';
  return { name: `${prefix}${name}`, version: typeof resourceVersion === 'string' ? resourceVersion : '' };
}

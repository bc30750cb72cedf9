import { serviceSpec, serviceStatus } from './decode-service.ts';
import { sliceReader } from './decode-slice.ts';
import {
  type FieldProblem,
  FieldReport,
  listOf,
  type MandatoryField,
  type Reader,
  record,
  required,
  text,
  textMap,
  withFallback,
} from './field-reader.ts';
import { KNOWN_ANNOTATIONS, KNOWN_LABELS } from './known-names.ts';
import type { KubeKind, KubeObject, Node, ObjectMeta, Service, ServiceCIDR } from './types.ts';
import { cidr, cidrOrEmpty, dnsLabel, dnsSubdomain } from './value-readers.ts';

/** The one API version of each kind that is read. */
export const API_VERSIONS: Readonly<Record<KubeKind, string>> = {
  Service: 'v1',
  EndpointSlice: 'discovery.k8s.io/v1',
  Node: 'v1',
  ServiceCIDR: 'networking.k8s.io/v1',
};

/** Either the object or everything that is wrong with it. */
export type Decoded =
  | { readonly object: KubeObject; readonly problems?: never }
  | { readonly object?: never; readonly problems: readonly FieldProblem[] };

/** Nothing is asked of the field, and nothing kept. */
const notRead: Reader<never> = () => undefined;

function metadata(namespace: MandatoryField<string>, creationTimestamp: Reader<string> = notRead): Reader<ObjectMeta> {
  return record<ObjectMeta>({
    name: required(dnsSubdomain),
    namespace,
    labels: textMap(KNOWN_LABELS),
    annotations: textMap(KNOWN_ANNOTATIONS),
    creationTimestamp,
    deletionTimestamp: text,
  });
}

const namespace = withFallback(dnsLabel, 'default');
const namespaced = metadata(namespace);
const ofService = metadata(namespace, text);
// Whatever a manifest gives as the namespace of a cluster-scoped object means nothing.
const clusterScoped = metadata(withFallback(() => '', ''));

type NodeSpec = NonNullable<Node['spec']>;
type NodeStatus = NonNullable<Node['status']>;

type FieldsOf<K extends KubeKind> = Omit<Extract<KubeObject, { kind: K }>, 'kind'>;

const READERS: { readonly [K in KubeKind]: Reader<FieldsOf<K>> } = {
  Service: record<Omit<Service, 'kind'>>({
    metadata: required(ofService),
    spec: required(serviceSpec),
    status: serviceStatus,
  }),
  EndpointSlice: sliceReader(namespaced),
  Node: record<Omit<Node, 'kind'>>({
    metadata: required(clusterScoped),
    spec: record<NodeSpec>({
      podCIDR: cidrOrEmpty,
      podCIDRs: listOf(cidr),
      taints: listOf(record<{ readonly key: string; readonly effect?: string }>({ key: required(text), effect: text })),
    }),
    status: record<NodeStatus>({
      addresses: listOf(
        record<{ readonly type: string; readonly address: string }>({ type: required(text), address: required(text) }),
      ),
    }),
  }),
  ServiceCIDR: record<Omit<ServiceCIDR, 'kind'>>({
    metadata: required(clusterScoped),
    spec: record<NonNullable<ServiceCIDR['spec']>>({ cidrs: listOf(cidr) }),
  }),
};

/**
 * Turns the JSON form of a Kubernetes object of the given kind into its type, with only the fields of types.ts.
 * A namespaced object without a namespace is in `default`. Never throws; all problems are collected.
 */
export function decodeObject(kind: KubeKind, value: unknown): Decoded {
  const report = new FieldReport();
  const fields = READERS[kind](value, report);
  if (report.problems.length > 0) return { problems: report.problems };
  return { object: { kind, ...fields } as KubeObject };
}

export function isKubeKind(kind: string): kind is KubeKind {
  return Object.hasOwn(API_VERSIONS, kind);
}

import {
  type FieldProblem,
  FieldReport,
  type MandatoryField,
  type Reader,
  record,
  required,
  text,
  textMap,
  withFallback,
} from './field-reader.ts';
import { KNOWN_ANNOTATIONS, KNOWN_LABELS } from './known-names.ts';
import type { KubeKind, KubeObjectOf, ObjectMeta } from './types.ts';
import { dnsLabel, dnsSubdomain } from './value-readers.ts';

/** One kind of objects, and what turns its JSON into the type of types.ts. */
export interface ObjectKind<K extends KubeKind = KubeKind> {
  readonly kind: K;
  /** The one API version that is read. */
  readonly apiVersion: string;
  readonly namespaced: boolean;
  /** Keeps the fields that are used, and no others. */
  readonly read: Reader<Omit<KubeObjectOf<K>, 'kind'>>;
}

/** Either the object or everything that is wrong with it. */
export type Decoded<K extends KubeKind = KubeKind> =
  | { readonly object: KubeObjectOf<K>; readonly problems?: never }
  | { readonly object?: never; readonly problems: readonly FieldProblem[] };

/**
 * Turns the JSON form of a Kubernetes object of the given kind into its type, with only the fields of types.ts.
 * A namespaced object without a namespace is in `default`. Never throws; all problems are collected.
 */
export function decodeObject<K extends KubeKind>(kind: ObjectKind<K>, value: unknown): Decoded<K> {
  const report = new FieldReport();
  const fields = kind.read(value, report);
  if (report.problems.length > 0) return { problems: report.problems };
  return { object: { kind: kind.kind, ...fields } as unknown as KubeObjectOf<K> };
}

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

/** The metadata of an object in a namespace. */
export const namespaced: Reader<ObjectMeta> = metadata(namespace);

/** The same, with the time the object was made. */
export const namespacedWithAge: Reader<ObjectMeta> = metadata(namespace, text);

const noNamespace = withFallback(() => '', '');

/** The metadata of a cluster-scoped object: whatever a manifest gives as its namespace means nothing. */
export const clusterScoped: Reader<ObjectMeta> = metadata(noNamespace);

/** The same, with the time the object was made. */
export const clusterScopedWithAge: Reader<ObjectMeta> = metadata(noNamespace, text);

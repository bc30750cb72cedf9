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
import type { Message } from './protobuf/message.ts';
import type { KubeKind, KubeObjectOf, ObjectMeta } from './types.ts';
import { dnsLabel, dnsSubdomain } from './value-readers.ts';

/** One kind of objects, and what turns its JSON into the type of types.ts. */
export interface ObjectKind<K extends KubeKind = KubeKind> {
  readonly kind: K;
  /** The one API version that is read. */
  readonly apiVersion: string;
  readonly namespaced: boolean;
  /** Its fields in protobuf, as far as they are used; undefined: API servers know it in JSON only. */
  readonly message?: Message;
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

/** Fields that are read for some kinds only. */
const NOT_READ = { creationTimestamp: notRead, uid: notRead, resourceVersion: notRead };

/** @param also what is read besides what is read for every kind */
function metadata(namespace: MandatoryField<string>, ...also: readonly (keyof typeof NOT_READ)[]): Reader<ObjectMeta> {
  return record<ObjectMeta>({
    name: required(dnsSubdomain),
    namespace,
    labels: textMap(KNOWN_LABELS),
    annotations: textMap(KNOWN_ANNOTATIONS),
    deletionTimestamp: text,
    ...NOT_READ,
    ...Object.fromEntries(also.map((field) => [field, text])),
  });
}

const namespace = withFallback(dnsLabel, 'default');

/** The metadata of an object in a namespace. */
export const namespaced: Reader<ObjectMeta> = metadata(namespace);

/** The same, with the time the object was made. */
export const namespacedWithAge: Reader<ObjectMeta> = metadata(namespace, 'creationTimestamp');

const noNamespace = withFallback(() => '', '');

/** The metadata of a cluster-scoped object: whatever a manifest gives as its namespace means nothing. */
export const clusterScoped: Reader<ObjectMeta> = metadata(noNamespace);

/** The same, with what tells the object from an earlier one of its name, and the time it was made. */
export const clusterScopedWithUid: Reader<ObjectMeta> = metadata(noNamespace, 'uid', 'creationTimestamp');

/** The same, with what a compare-and-swap needs: every write of such an object is an event. */
export const clusterScopedWithVersion: Reader<ObjectMeta> = metadata(
  noNamespace,
  'uid',
  'resourceVersion',
  'creationTimestamp',
);

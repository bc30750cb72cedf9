import type { ObjectKind } from '../objects/kind.ts';
import type { Resource } from '../resource.ts';

/** The kinds whose objects are read from manifests, by name, in the order in which their objects are told. */
export type ManifestKinds = ReadonlyMap<string, ObjectKind>;

/** The kinds of the resources, in their order. */
export function kindsOf(resources: readonly Resource[]): ManifestKinds {
  return new Map(resources.map(({ kind }) => [kind.kind, kind]));
}

import { isDeepStrictEqual } from 'node:util';
import type { ObjectKind } from './objects/kind.ts';
import type { SharedValues } from './objects/shared-values.ts';
import type { KubeKind, KubeObject, KubeObjectOf } from './objects/types.ts';

/** A resource of the API that a source reads, and which of its objects. */
export interface Resource<K extends KubeKind = KubeKind> {
  /** As the API names it: `services`. */
  readonly name: string;
  /** What its objects are, and how they are decoded. */
  readonly kind: ObjectKind<K>;
  /**
   * Selectors, for the API server to apply. A source may tell more: a directory of manifests has nobody to select, and another
   * consumer may want others. Whoever needs the choice makes it again.
   */
  readonly query: Readonly<Record<string, string>>;
  /** Older servers do not know it, and we can do without. @default false */
  readonly optional?: boolean;
  /** `synced` waits for it as long as it takes. @default false: not longer than 30 s */
  readonly essential?: boolean;
  /** An object that `synced` waits for, too, as long as for what is not essential. */
  readonly awaited?: AwaitedObject;
  /** What to read while the server does not know the resource (404). */
  readonly substitute?: Substitute;
  /** Gives equal parts of many objects the same memory. */
  slim?(object: KubeObjectOf<K>, shared: SharedValues): KubeObjectOf<K>;
}

/** One object by name. */
export interface AwaitedObject {
  /** `Node node-1`. */
  readonly object: string;
  /** Whether it has what it is awaited for. */
  isReady(object: KubeObject): boolean;
  /** The problem that is told when the time is over and it is not there, or not ready. */
  readonly absence: string;
}

/** An older resource, whose objects are turned into those of the newer one. */
export interface Substitute {
  readonly name: string;
  /** The kind of its objects, for messages. */
  readonly kind: string;
  readonly apiVersion: string;
  /** The JSON of an object as that of any number of objects of the newer kind. Never throws. */
  expand(value: unknown): readonly unknown[];
}

/** The path to list and watch a resource at: `/api/v1/services`, `/apis/discovery.k8s.io/v1/endpointslices`. */
export function pathOf(apiVersion: string, name: string): string {
  return `/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}/${name}`;
}

/**
 * What a source has to read so that every consumer finds its objects: each resource once, in the order in which they are first
 * wanted. Where selectors differ, all objects are read.
 */
export function mergeResources(wanted: readonly Resource[]): readonly Resource[] {
  const merged = new Map<string, Resource>();
  for (const resource of wanted) {
    const path = pathOf(resource.kind.apiVersion, resource.name);
    const known = merged.get(path);
    merged.set(path, known ? mergeTwo(known, resource) : resource);
  }
  return [...merged.values()];
}

function mergeTwo(first: Resource, second: Resource): Resource {
  const awaited = first.awaited ?? second.awaited;
  return {
    ...first,
    query: isDeepStrictEqual(first.query, second.query) ? first.query : {},
    optional: first.optional === true && second.optional === true,
    essential: first.essential === true || second.essential === true,
    ...(awaited && { awaited }),
  };
}

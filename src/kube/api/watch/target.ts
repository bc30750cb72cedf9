import { isMapping } from '../../../core/index.ts';
import type { FieldProblem } from '../../objects/field-reader.ts';
import { decodeObject } from '../../objects/kind.ts';
import type { Message } from '../../objects/protobuf/message.ts';
import type { SharedValues } from '../../objects/shared-values.ts';
import type { KubeObject } from '../../objects/types.ts';
import { pathOf, type Resource } from '../../resource.ts';

/** What an object of the API is to us: usually one object, or everything that is wrong with it. */
export type Projected =
  | { readonly objects: readonly KubeObject[]; readonly problems?: never }
  | { readonly objects?: never; readonly problems: readonly FieldProblem[] };

/** One thing to list and watch: a resource, or its substitute. */
export interface WatchTarget {
  /** As the API names it: `services`. */
  readonly name: string;
  /** The kind of its objects in the API, for messages. */
  readonly kind: string;
  readonly path: string;
  /** Selectors; the server applies them. */
  readonly query: Readonly<Record<string, string>>;
  /** Older servers do not know it, and we can do without. */
  readonly optional: boolean;
  /** Its objects in protobuf; undefined: they are read in JSON. */
  readonly message: Message | undefined;
  /** Keeps only what types.ts names. Never throws. */
  project(value: unknown, shared: SharedValues): Projected;
}

/** The resource itself, then what to use instead while the server does not know it. */
export function targetsOf(resource: Resource): readonly [WatchTarget, ...WatchTarget[]] {
  const { name, kind, query, optional = false, substitute } = resource;
  const target: WatchTarget = {
    name,
    kind: kind.kind,
    path: pathOf(kind.apiVersion, name),
    query,
    optional,
    message: kind.message,
    project: (value, shared) => project(resource, [value], shared),
  };
  if (!substitute) return [target];
  const instead: WatchTarget = {
    name: substitute.name,
    kind: substitute.kind,
    path: pathOf(substitute.apiVersion, substitute.name),
    query,
    optional,
    message: undefined,
    project: (value, shared) => project(resource, substitute.expand(value), shared),
  };
  return [target, instead];
}

function project(resource: Resource, values: readonly unknown[], shared: SharedValues): Projected {
  // Of its length at once: a list that grows has room for seventeen, and nearly all of these hold one.
  const objects = new Array<KubeObject>(values.length);
  for (let index = 0; index < values.length; index++) {
    const { object, problems } = decodeObject(resource.kind, values[index]);
    if (problems) return { problems };
    objects[index] = resource.slim?.(object, shared) ?? object;
  }
  return { objects };
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

import { isDeepStrictEqual } from 'node:util';
import { isMapping } from '../../../src/core/index.ts';
import type { ApiObject } from './api-object.ts';

/** A field that two managers want to have different values. */
export interface FieldConflict {
  readonly manager: string;
  /** `.spec.leaseDurationSeconds`. */
  readonly field: string;
}

/** Fields that name an object or are the server's; nobody owns them. */
const UNOWNED: ReadonlySet<string> = new Set([
  ...['apiVersion', 'kind'],
  ...['name', 'namespace', 'uid', 'resourceVersion', 'creationTimestamp', 'managedFields'].map(
    (key) => `metadata.${key}`,
  ),
]);

/** The path of a field; keys may have dots in them. */
type Path = readonly string[];

/**
 * Who has applied which fields (server-side apply). What this does not do, and a real server does: lists are one field
 * as a whole, never merged by key; fields written in other ways than by apply belong to nobody, so that an apply takes
 * them over without a conflict; `metadata.managedFields` does not show any of it.
 */
export class AppliedFields {
  /** By uid and manager, the fields that it owns. */
  readonly #owned = new Map<unknown, Map<string, Map<string, Path>>>();

  /**
   * The object as it is when `manager` has applied `wanted`. Nothing is remembered of it before `commit`.
   *
   * @param live as it is now; undefined: it does not exist
   * @param force takes the fields over that others own
   */
  apply(live: ApiObject | undefined, wanted: ApiObject, manager: string, force: boolean): Applied {
    const fields = leavesOf(wanted);
    const conflicts: FieldConflict[] = [];
    const others = [...(this.#owned.get(live?.metadata.uid) ?? [])].filter(([name]) => name !== manager);
    for (const [name, theirs] of others) {
      for (const [key, path] of fields) {
        const differs = !isDeepStrictEqual(valueAt(live, path), valueAt(wanted, path));
        if (theirs.has(key) && differs) conflicts.push({ manager: name, field: `.${path.join('.')}` });
      }
    }
    if (conflicts.length > 0 && !force) return { conflicts };

    const object = structuredClone(live ?? {}) as Record<string, unknown>;
    for (const [key, path] of this.#owned.get(live?.metadata.uid)?.get(manager) ?? []) {
      if (!fields.has(key) && !others.some(([, theirs]) => theirs.has(key))) removeAt(object, path);
    }
    for (const path of fields.values()) setAt(object, path, valueAt(wanted, path));
    for (const key of ['apiVersion', 'kind']) object[key] = wanted[key];
    const { name, namespace } = wanted.metadata;
    const metadata = isMapping(object.metadata) ? object.metadata : {};
    object.metadata = { name, ...(namespace !== undefined && { namespace }), ...metadata };
    const commit = ({ metadata }: ApiObject) => {
      const owners = this.#owned.get(metadata.uid) ?? new Map<string, Map<string, Path>>();
      this.#owned.set(metadata.uid, owners.set(manager, fields));
      for (const { manager: loser, field } of conflicts) {
        const theirs = owners.get(loser);
        for (const [key, path] of theirs ?? []) if (`.${path.join('.')}` === field) theirs?.delete(key);
      }
    };
    return { object: object as ApiObject, commit };
  }
}

export type Applied =
  | { readonly conflicts: readonly FieldConflict[]; readonly object?: never; readonly commit?: never }
  | { readonly object: ApiObject; readonly commit: (stored: ApiObject) => void; readonly conflicts?: never };

/** All that is not a mapping with something in it, by its path. */
function leavesOf(object: ApiObject): Map<string, Path> {
  const leaves = new Map<string, Path>();
  const visit = (value: unknown, path: Path) => {
    if (UNOWNED.has(path.join('.'))) return;
    if (isMapping(value) && Object.keys(value).length > 0) {
      for (const [key, item] of Object.entries(value)) visit(item, [...path, key]);
    } else leaves.set(JSON.stringify(path), path);
  };
  visit(object, []);
  return leaves;
}

function valueAt(object: unknown, path: Path): unknown {
  return path.reduce<unknown>((value, key) => (isMapping(value) ? value[key] : undefined), object);
}

function setAt(object: Record<string, unknown>, path: Path, value: unknown): void {
  const parent = path.slice(0, -1).reduce((mapping, key) => {
    if (!isMapping(mapping[key])) mapping[key] = {};
    return mapping[key] as Record<string, unknown>;
  }, object);
  parent[path.at(-1)!] = value;
}

function removeAt(object: Record<string, unknown>, path: Path): void {
  const parent = valueAt(object, path.slice(0, -1));
  if (isMapping(parent)) delete (parent as Record<string, unknown>)[path.at(-1)!];
}

import { type FieldProblem, formatFieldPath } from '../../objects/field-reader.ts';
import { SharedValues } from '../../objects/shared-values.ts';
import { type KubeObject, objectKey } from '../../objects/types.ts';
import type { ObjectEvent, SourceProblem } from '../../source.ts';
import { sameJson } from './same-json.ts';
import { identityOf, type WatchTarget } from './target.ts';

/** What is known of one object of the API. */
interface Known {
  /** metadata.resourceVersion. */
  readonly version: string;
  /** What was last told of it: the last state that could be used. */
  readonly objects: readonly KubeObject[];
  /** Why its present state cannot be used. */
  readonly problems?: readonly FieldProblem[];
}

const NOTHING: Known = { version: '', objects: [] };

/**
 * The objects of one resource as last told, and what a watch event or a new list changes about them. Pure: whoever calls
 * passes the events on.
 *
 * A list is compared with what is known, never taken as a new beginning: an object is deleted only if a *complete* list
 * is without it, and one that has not changed is not mentioned.
 */
export class ResourceCache {
  readonly #target: WatchTarget;
  readonly #known = new Map<string, Known>();
  /** Names of the objects that cannot be used. */
  readonly #faulty = new Set<string>();
  readonly #shared = new SharedValues();
  /** Names met in the list being read; undefined: none is. */
  #listed: Set<string> | undefined;
  /** Objects without a name, since the list began. */
  #nameless = 0;
  #problemRevision = 0;

  constructor(target: WatchTarget) {
    this.#target = target;
  }

  /** The number of objects of the API. */
  get size(): number {
    return this.#known.size;
  }

  /** Another number means that `problems()` may have changed. */
  get problemRevision(): number {
    return this.#problemRevision;
  }

  /** Begins to read a list; a former one that was not finished is forgotten, and has deleted nothing. */
  startList(): void {
    this.#listed = new Set();
    if (this.#nameless > 0) this.#problemRevision++;
    this.#nameless = 0;
  }

  /** The server's store is another one: that an object has the version it had says nothing any more. Nothing is deleted by that. */
  forgetVersions(): void {
    for (const [name, known] of this.#known) this.#known.set(name, { ...known, version: '' });
  }

  /** Ends the list: whatever was not in it is gone. */
  finishList(): readonly ObjectEvent[] {
    const listed = this.#listed;
    if (!listed) return [];
    this.#listed = undefined;
    return [...this.#known.keys()].filter((name) => !listed.has(name)).flatMap((name) => this.#forget(name));
  }

  /** An item of a list, or the object of an ADDED or MODIFIED event. */
  put(value: unknown): readonly ObjectEvent[] {
    const identity = identityOf(value);
    if (!identity) {
      this.#nameless++;
      this.#problemRevision++;
      return [];
    }
    const { name, version } = identity;
    this.#listed?.add(name);
    const old = this.#known.get(name) ?? NOTHING;
    if (version !== '' && version === old.version) return [];

    const { objects, problems } = this.#target.project(value, this.#shared);
    if (problems) {
      this.#faulty.add(name);
      this.#problemRevision++;
      this.#known.set(name, { version, objects: old.objects, problems });
      return [];
    }
    this.#mend(name);
    this.#known.set(name, { version, objects });
    return difference(old.objects, objects);
  }

  /** The object of a DELETED event: it is gone, or our selectors no longer match it. */
  remove(value: unknown): readonly ObjectEvent[] {
    const name = identityOf(value)?.name;
    if (name === undefined) return [];
    this.#listed?.delete(name);
    return this.#forget(name);
  }

  /** Everything that is deleted, when the resource itself is given up for another one. */
  clear(): readonly ObjectEvent[] {
    return [...this.#known.keys()].flatMap((name) => this.#forget(name));
  }

  /** The objects whose present state cannot be used. */
  problems(): readonly SourceProblem[] {
    const { name: where, kind } = this.#target;
    const result: SourceProblem[] = [];
    for (const name of [...this.#faulty].sort()) {
      for (const { path, message } of this.#known.get(name)?.problems ?? []) {
        const field = formatFieldPath(path);
        result.push({ where, object: `${kind} ${name}`, ...(field !== '' && { field }), message });
      }
    }
    if (this.#nameless > 0) {
      result.push({ where, message: `Objects without a name were left out: ${this.#nameless}` });
    }
    return result;
  }

  #forget(name: string): readonly ObjectEvent[] {
    const known = this.#known.get(name);
    this.#known.delete(name);
    this.#mend(name);
    return known ? difference(known.objects, []) : [];
  }

  #mend(name: string): void {
    if (this.#faulty.delete(name)) this.#problemRevision++;
  }
}

/** From what was told of an object of the API to what is to be told. Endpoints become as many objects as they have subsets. */
function difference(old: readonly KubeObject[], now: readonly KubeObject[]): readonly ObjectEvent[] {
  // Ten thousand of a start: nothing to look up.
  if (old.length === 0) return now.map((object) => ({ type: 'added', object }));
  const events: ObjectEvent[] = [];
  const present = new Set(now.map(objectKey));
  for (const object of old) if (!present.has(objectKey(object))) events.push({ type: 'deleted', object });
  const known = new Map(old.map((object) => [objectKey(object), object]));
  for (const object of now) {
    const before = known.get(objectKey(object));
    if (!before) events.push({ type: 'added', object });
    else if (!sameJson(before, object)) events.push({ type: 'updated', object });
  }
  return events;
}

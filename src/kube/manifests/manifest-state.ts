import { isDeepStrictEqual } from 'node:util';
import { type KubeObject, objectKey } from '../objects/types.ts';
import type { ObjectEvent, SourceProblem } from '../source.ts';
import { type ManifestFiles, settleConflicts } from './manifest-conflicts.ts';
import type { Manifest, ManifestObject } from './manifest-file.ts';
import type { ManifestKinds } from './manifest-kinds.ts';

/**
 * What the manifests of a folder say: per file the content in force, which is the last one that could be used. A file
 * takes force as a whole or not at all. Pure; the files are read elsewhere.
 */
export class ManifestState {
  /** The kinds in the order in which their objects are told. */
  readonly #order: readonly string[];
  /** The content in force, by file name, then by object key. No object is in two files. */
  readonly #inForce = new Map<string, ReadonlyMap<string, KubeObject>>();
  /** The file that defines an object. */
  readonly #owners = new Map<string, string>();
  /** Faultless contents that conflict with another file. */
  #waiting: ManifestFiles = new Map();
  /** Why the present content of a file is not in force. */
  readonly #problems = new Map<string, readonly SourceProblem[]>();

  constructor(kinds: ManifestKinds) {
    this.#order = [...kinds.keys()];
  }

  /**
   * Takes the new contents of some files (undefined: the file is gone) and returns what that changes: deletions first,
   * then additions and updates, each by kind and name. One call is one round: what moves between its files is no deletion.
   */
  update(changes: ReadonlyMap<string, Manifest | undefined>): readonly ObjectEvent[] {
    const before = new Map<string, KubeObject>();
    const after = new Map<string, KubeObject>();
    const waiting = new Map(this.#waiting);
    for (const [file, manifest] of changes) {
      waiting.delete(file);
      this.#problems.delete(file);
      if (!manifest) this.#withdraw(file, before);
      else if (manifest.problems.length > 0) this.#problems.set(file, manifest.problems);
      else waiting.set(file, manifest.objects);
    }

    const { accepted, refused } = settleConflicts(waiting, (key) => this.#owners.get(key));
    for (const file of waiting.keys()) this.#problems.delete(file);
    for (const [file, problems] of refused) this.#problems.set(file, problems);
    this.#waiting = new Map([...waiting].filter(([file]) => refused.has(file)));
    // First all the old, then all the new: an object may move from a later file to an earlier one.
    for (const file of accepted.keys()) this.#withdraw(file, before);
    for (const [file, objects] of accepted) this.#enforce(file, objects, after);
    return this.#difference(before, after);
  }

  /** All present problems, by file name. */
  problems(): readonly SourceProblem[] {
    const files = [...this.#problems.keys()].sort();
    return files.flatMap((file) => this.#problems.get(file) ?? []);
  }

  #withdraw(file: string, before: Map<string, KubeObject>): void {
    for (const [key, object] of this.#inForce.get(file) ?? []) {
      before.set(key, object);
      this.#owners.delete(key);
    }
    this.#inForce.delete(file);
  }

  #enforce(file: string, objects: readonly ManifestObject[], after: Map<string, KubeObject>): void {
    const content = new Map(objects.map(({ object }) => [objectKey(object), object]));
    for (const [key, object] of content) {
      after.set(key, object);
      this.#owners.set(key, file);
    }
    this.#inForce.set(file, content);
  }

  #difference(before: ReadonlyMap<string, KubeObject>, after: ReadonlyMap<string, KubeObject>): ObjectEvent[] {
    const deleted: ObjectEvent[] = [];
    const changed: ObjectEvent[] = [];
    for (const [key, object] of before) {
      if (!after.has(key)) deleted.push({ type: 'deleted', object });
    }
    for (const [key, object] of after) {
      const old = before.get(key);
      if (!old) changed.push({ type: 'added', object });
      else if (!isDeepStrictEqual(old, object)) changed.push({ type: 'updated', object });
    }
    const byKindAndName = ({ object: a }: ObjectEvent, { object: b }: ObjectEvent): number =>
      this.#order.indexOf(a.kind) - this.#order.indexOf(b.kind) || (objectKey(a) < objectKey(b) ? -1 : 1);
    return [...deleted.sort(byKindAndName), ...changed.sort(byKindAndName)];
  }
}

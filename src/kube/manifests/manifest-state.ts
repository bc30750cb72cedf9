import { isDeepStrictEqual } from 'node:util';
import { compareText, type Steps } from '../../core/index.ts';
import { type KubeObject, objectKey } from '../objects/types.ts';
import type { ObjectEvent, SourceProblem } from '../source.ts';
import type { Manifest, ManifestObject } from './manifest-file.ts';
import type { ManifestKinds } from './manifest-kinds.ts';
import { mistakesBetween } from './mistakes/index.ts';

/** Objects of a file that other files define as well, and that are named. A line is looked up for each. */
const MOST_CONFLICTS = 20;

/**
 * What the manifests of a folder say. Every object takes force on its own; one that cannot be used keeps its last good content,
 * and while a file holds such a one, nothing that it defined before is deleted: nobody knows what was to be written there. Pure;
 * the files are read elsewhere.
 */
export class ManifestState {
  /** The kinds in the order in which their objects are told. */
  readonly #order: readonly string[];
  /** The content in force, by file name, then by object key. No object is in two files. */
  readonly #inForce = new Map<string, Map<string, KubeObject>>();
  /** The file that defines an object. */
  readonly #owners = new Map<string, string>();
  /** Objects that another file has in force, by file name, then by object key. */
  #waiting: ReadonlyMap<string, ReadonlyMap<string, ManifestObject>> = new Map();
  /** What is wrong with the present content of a file. */
  readonly #problems = new Map<string, readonly SourceProblem[]>();
  /** Objects of a file that cannot be used. */
  readonly #refused = new Map<string, readonly string[]>();
  /** What is wrong between objects. */
  #between: readonly SourceProblem[] = [];
  /** Objects of kinds that are not read, by file name. */
  readonly #ignored = new Map<string, readonly string[]>();

  constructor(kinds: ManifestKinds) {
    this.#order = [...kinds.keys()];
  }

  /**
   * Takes the new contents of some files (undefined: the file is gone) and returns what that changes: deletions first,
   * then additions and updates, each by kind and name. One call is one round: what moves between its files is no deletion.
   *
   * Where two files define the same object, the one that has it in force keeps it, else the first file in name order has it.
   */
  update(changes: ReadonlyMap<string, Manifest | undefined>): readonly ObjectEvent[] {
    const before = new Map<string, KubeObject>();
    const after = new Map<string, KubeObject>();
    const formerOwners = new Map<string, string>();
    const newcomers = new Map(this.#waiting);
    for (const [file, manifest] of changes) {
      newcomers.delete(file);
      this.#note(file, manifest);
      const content = new Map(manifest?.objects.map((item) => [objectKey(item.object), item]));
      const keeps = manifest?.problems.some(({ inForce }) => !inForce) === true;
      for (const [key, object] of this.#inForce.get(file) ?? []) {
        if (keeps && !content.has(key)) continue;
        before.set(key, object);
        formerOwners.set(key, file);
        this.#withdraw(file, key);
      }
      if (content.size > 0) newcomers.set(file, content);
    }

    const waiting = new Map<string, Map<string, ManifestObject>>();
    for (const [file, content] of [...newcomers].sort(([a], [b]) => compareText(a, b))) {
      for (const [key, item] of content) {
        const former = formerOwners.get(key) ?? file;
        const isFree = !this.#owners.has(key) && (former === file || !newcomers.get(former)?.has(key));
        if (isFree) {
          this.#enforce(file, key, item.object);
          after.set(key, item.object);
        } else {
          const losers = waiting.get(file) ?? new Map<string, ManifestObject>();
          waiting.set(file, losers.set(key, item));
        }
      }
    }
    this.#waiting = waiting;
    return this.#difference(before, after);
  }

  /** All present problems: those that a file shows, by its name, then those between objects, as `lookBetween` last found them. */
  problems(): readonly SourceProblem[] {
    return [...this.#ofFiles(), ...this.#between];
  }

  /** Looks for mistakes between objects, through all there are. */
  *lookBetween(): Steps<void> {
    const refused = new Set([...this.#refused.values()].flat());
    this.#between = yield* mistakesBetween({
      files: this.#inForce,
      ignored: this.#ignored,
      isRefused: (key) => refused.has(key),
    });
  }

  #ofFiles(): readonly SourceProblem[] {
    const files = [...new Set([...this.#problems.keys(), ...this.#waiting.keys()])].sort();
    return files.flatMap((file) => [...(this.#problems.get(file) ?? []), ...this.#conflicts(file)]);
  }

  #note(file: string, manifest: Manifest | undefined): void {
    if (manifest && manifest.problems.length > 0) this.#problems.set(file, manifest.problems);
    else this.#problems.delete(file);
    if (manifest && manifest.refused.length > 0) this.#refused.set(file, manifest.refused);
    else this.#refused.delete(file);
    if (manifest && manifest.ignored.length > 0 && this.#order.includes('EndpointSlice'))
      this.#ignored.set(file, manifest.ignored);
    else this.#ignored.delete(file);
  }

  /** Objects of a file that another one has. */
  #conflicts(file: string): readonly SourceProblem[] {
    const all = [...(this.#waiting.get(file) ?? [])];
    const told = all.slice(0, MOST_CONFLICTS).map(([key, item]) => ({
      where: `${file}:${item.line()}`,
      object: key,
      message: `Already defined in "${this.#owners.get(key)}", whose content is in force; remove one of the two`,
    }));
    const others = all.length - told.length;
    if (others === 0) return told;
    return [...told, { where: file, message: `${others} more objects are already defined in other files`, others }];
  }

  #withdraw(file: string, key: string): void {
    const content = this.#inForce.get(file);
    content?.delete(key);
    if (content?.size === 0) this.#inForce.delete(file);
    this.#owners.delete(key);
  }

  #enforce(file: string, key: string, object: KubeObject): void {
    const content = this.#inForce.get(file) ?? new Map<string, KubeObject>();
    this.#inForce.set(file, content.set(key, object));
    this.#owners.set(key, file);
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
      this.#order.indexOf(a.kind) - this.#order.indexOf(b.kind) || compareText(objectKey(a), objectKey(b));
    return [...deleted.sort(byKindAndName), ...changed.sort(byKindAndName)];
  }
}

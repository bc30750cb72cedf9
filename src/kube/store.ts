import { type KubeKind, type KubeObjectOf, objectName } from './objects/types.ts';
import type { ObjectEvent } from './source.ts';

/**
 * The objects of one kind that a consumer wants, as a source last told them. An update that makes an object unwanted acts as
 * its deletion. The cost of an event does not depend on the number of objects.
 */
export class ObjectsOf<K extends KubeKind> {
  readonly #kind: K;
  readonly #isWanted: (object: KubeObjectOf<K>) => boolean;
  readonly #objects = new Map<string, KubeObjectOf<K>>();

  /** @param isWanted which objects are held. @default all */
  constructor(kind: K, isWanted: (object: KubeObjectOf<K>) => boolean = () => true) {
    this.#kind = kind;
    this.#isWanted = isWanted;
  }

  /**
   * Takes an event of any kind in.
   *
   * @returns the name (`namespace/name`) of the object that was set or removed; undefined: nothing here has changed
   */
  apply({ type, object }: ObjectEvent): string | undefined {
    if (object.kind !== this.#kind) return undefined;
    const name = objectName(object);
    const ofKind = object as KubeObjectOf<K>;
    if (type === 'deleted' || !this.#isWanted(ofKind)) return this.#objects.delete(name) ? name : undefined;
    this.#objects.set(name, ofKind);
    return name;
  }

  get(name: string): KubeObjectOf<K> | undefined {
    return this.#objects.get(name);
  }

  names(): Iterable<string> {
    return this.#objects.keys();
  }

  values(): Iterable<KubeObjectOf<K>> {
    return this.#objects.values();
  }
}

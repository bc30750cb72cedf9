import type { KubeKind, KubeObject, ObjectEvent, ObjectHandler } from '../../kube/index.ts';

/** Who hears of the objects. */
export type Listener = Required<Pick<ObjectHandler, 'event' | 'listed' | 'synced'>>;

/**
 * Keeps the objects that a source tells until there is somebody to hear of them: then each is told as it is by now, in the
 * order in which they came first, and everything further goes straight through.
 */
export class HeldObjects implements Listener {
  readonly #held = new Map<string, KubeObject>();
  readonly #listed: KubeKind[] = [];
  #isComplete = false;
  #listener: Listener | undefined;

  event(event: ObjectEvent): void {
    if (this.#listener) {
      this.#listener.event(event);
      return;
    }
    const { kind, metadata } = event.object;
    const key = `${kind}/${metadata.namespace ?? ''}/${metadata.name}`;
    if (event.type === 'deleted') this.#held.delete(key);
    else this.#held.set(key, event.object);
  }

  listed(kind: KubeKind): void {
    this.#listed.push(kind);
    this.#listener?.listed(kind);
  }

  synced(): void {
    this.#isComplete = true;
    this.#listener?.synced();
  }

  /** Whether every object that existed at the start is known. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** How many objects wait to be told. */
  get size(): number {
    return this.#held.size;
  }

  /** Tells `listener` what was held, and from now on everything at once. To be called once. */
  release(listener: Listener): void {
    const objects = [...this.#held.values()];
    this.#held.clear();
    this.#listener = listener;
    for (const object of objects) listener.event({ type: 'added', object });
    for (const kind of this.#listed) listener.listed(kind);
    if (this.#isComplete) listener.synced();
  }
}

import {
  type KubeObject,
  type ObjectEvent,
  type ObjectHandler,
  objectKey,
  type SourceProblem,
} from '../../../src/kube/index.ts';

/**
 * A handler that keeps what it is told and holds the source to its contract: only the unknown is added, only the known is
 * updated or deleted, and `synced` comes once.
 */
export class ObjectRecorder implements ObjectHandler {
  readonly events: ObjectEvent[] = [];
  readonly objects = new Map<string, KubeObject>();
  /** What the source got wrong. */
  readonly violations: string[] = [];
  isSynced = false;
  present: readonly SourceProblem[] = [];
  readonly #onEvent: (event: ObjectEvent) => void;

  constructor(onEvent: (event: ObjectEvent) => void = () => {}) {
    this.#onEvent = onEvent;
  }

  event(event: ObjectEvent): void {
    const key = objectKey(event.object);
    if (this.objects.has(key) !== (event.type !== 'added')) this.violations.push(`${event.type} ${key}`);
    if (event.type === 'deleted') this.objects.delete(key);
    else this.objects.set(key, event.object);
    this.events.push(event);
    this.#onEvent(event);
  }

  synced(): void {
    if (this.isSynced) this.violations.push('synced twice');
    this.isSynced = true;
  }

  problems(problems: readonly SourceProblem[]): void {
    this.present = problems;
  }

  /** The keys of the objects, sorted. */
  keys(): readonly string[] {
    return [...this.objects.keys()].sort();
  }

  /** The events as text, `added Service demo/web`. */
  log(): readonly string[] {
    return this.events.map(({ type, object }) => `${type} ${objectKey(object)}`);
  }

  object(key: string): KubeObject {
    const object = this.objects.get(key);
    if (!object) throw new Error(`No ${key} among ${this.keys().join(', ')}`);
    return object;
  }
}

import { type ApiObject, type ApiResource, keyOf, resourceOfKind } from './api-object.ts';

/** One change. */
export interface Change {
  readonly version: number;
  readonly resource: ApiResource;
  /** The state before; undefined: it was created. */
  readonly before: ApiObject | undefined;
  /** The state after; of a deleted object its last state, with the version of the deletion. */
  readonly after: ApiObject;
  readonly deleted: boolean;
}

/** What etcd is to a real server: objects, one version counter for all of them, and the changes since the last compaction. */
export class ObjectHistory {
  readonly #objects = new Map<string, Map<string, ApiObject>>();
  #changes: Change[] = [];
  #version = 1;
  /** Changes up to this version are gone. */
  #compacted = 0;
  readonly #listeners = new Set<(change: Change) => void>();

  get version(): number {
    return this.#version;
  }

  get compacted(): number {
    return this.#compacted;
  }

  /** The objects of a resource in the order of their keys, as etcd returns them. */
  objects(resource: ApiResource): readonly ApiObject[] {
    return [...this.#table(resource)].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
  }

  get(resource: ApiResource, key: string): ApiObject | undefined {
    return this.#table(resource).get(key);
  }

  /** Creates or replaces an object; it gets a version and the fields every stored object has. */
  put(object: ApiObject): ApiObject {
    const resource = resourceOfKind(object.kind);
    const table = this.#table(resource);
    const key = keyOf(object);
    const before = table.get(key);
    const version = ++this.#version;
    const after: ApiObject = {
      ...object,
      metadata: {
        ...object.metadata,
        uid: before?.metadata.uid ?? `00000000-0000-4000-8000-${String(version).padStart(12, '0')}`,
        creationTimestamp: before?.metadata.creationTimestamp ?? '2025-01-01T00:00:00Z',
        resourceVersion: String(version),
        managedFields: [MANAGED_BY_TEST],
      },
    };
    table.set(key, after);
    this.#record({ version, resource, before, after, deleted: false });
    return after;
  }

  /** False when it was not there. */
  delete(resource: ApiResource, key: string): boolean {
    const before = this.#table(resource).get(key);
    if (!before) return false;
    this.#table(resource).delete(key);
    const version = ++this.#version;
    const after = { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } };
    this.#record({ version, resource, before, after, deleted: true });
    return true;
  }

  changesSince(version: number): readonly Change[] {
    return this.#changes.filter((change) => change.version > version);
  }

  /** Forgets all changes, as etcd does every five minutes with old ones. */
  compact(): void {
    this.#changes = [];
    this.#compacted = this.#version;
  }

  /** A backup; calling it puts everything back to what it is now, as if nothing had happened since. Nobody is told. */
  backup(): () => void {
    const [version, tables] = [
      this.#version,
      [...this.#objects].map(([name, table]) => [name, new Map(table)] as const),
    ];
    return () => {
      this.#version = version;
      this.#changes = this.#changes.filter((change) => change.version <= version);
      this.#objects.clear();
      for (const [name, table] of tables) this.#objects.set(name, new Map(table));
    };
  }

  /** Returns how to stop listening. */
  listen(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #record(change: Change): void {
    this.#changes.push(change);
    for (const listener of [...this.#listeners]) listener(change);
  }

  #table({ name }: ApiResource): Map<string, ApiObject> {
    let table = this.#objects.get(name);
    if (!table) {
      table = new Map();
      this.#objects.set(name, table);
    }
    return table;
  }
}

/** As much as controllers really put there; nobody who reads the objects wants it. */
const MANAGED_BY_TEST = {
  manager: 'kube-controller-manager',
  operation: 'Update',
  apiVersion: 'v1',
  time: '2025-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: {
    'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} }, 'f:ownerReferences': { '.': {}, 'k:{"uid":"0"}': {} } },
    'f:spec': {
      'f:clusterIP': {},
      'f:ports': { '.': {}, 'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
    },
  },
};

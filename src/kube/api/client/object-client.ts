import { errorText, isMapping, NodeplaneError } from '../../../core/index.ts';
import { type ApiClient, type ApiRequest, ApiStatusError } from './api-client.ts';
import type { NewObject, ObjectName, ObjectResource, ObjectTarget, StoredObject } from './api-object.ts';
import { describeObject, ObjectError, type ObjectOperation } from './object-error.ts';
import { wholeBody } from './whole-body.ts';

/** etcd holds objects of up to 1.5 MB; escaping in JSON may make that several times as much. */
const LARGEST_OBJECT = 32 * 1024 * 1024;

export interface ObjectClientOptions {
  /** Stays the caller's. */
  readonly client: ApiClient;
  readonly resource: ObjectResource;
  /** Who writes, as `metadata.managedFields` names it: at most 128 characters. The owner of what is applied. */
  readonly fieldManager: string;
  /** Bytes of an answer, at most. @default 32 MiB */
  readonly largest?: number;
}

/**
 * Reads and writes single objects of one resource. Every method makes one request (two when credentials had to be
 * renewed) and leaves it to the caller to try again.
 *
 * Each rejects with ObjectError when the server refuses (`isRefused` tells why), and with ERR_API when the server cannot
 * be reached, stays silent or gives an unreadable answer. After an ERR_API without a status nobody knows whether a write
 * was done.
 *
 * Source: https://kubernetes.io/docs/reference/using-api/api-concepts/ and .../server-side-apply/
 */
export class ObjectClient {
  readonly #client: ApiClient;
  readonly #resource: ObjectResource;
  readonly #fieldManager: string;
  readonly #largest: number;

  constructor({ client, resource, fieldManager, largest = LARGEST_OBJECT }: ObjectClientOptions) {
    this.#client = client;
    this.#resource = resource;
    this.#fieldManager = fieldManager;
    this.#largest = largest;
  }

  /** The latest state. No resourceVersion is asked for, so that the answer is never an old one from a cache. */
  async get(target: ObjectName, signal: AbortSignal): Promise<StoredObject> {
    return await this.#sendFor('get', target, { method: 'GET', signal });
  }

  /** Makes a new object. Refused with `alreadyExists` when there is one of this name. */
  async create(object: NewObject, signal: AbortSignal): Promise<StoredObject> {
    const body = this.#typed(object);
    return await this.#sendFor('create', object.metadata, { method: 'POST', query: this.#asManager(), body, signal });
  }

  /**
   * Puts `object` in place of the version it was made of: a compare-and-swap. Refused with `conflict` when the object was
   * written, or deleted, since.
   */
  async replace(object: StoredObject, signal: AbortSignal): Promise<StoredObject> {
    const body = this.#typed(object);
    return await this.#sendFor('replace', object.metadata, { method: 'PUT', query: this.#asManager(), body, signal });
  }

  /**
   * Changes single fields (JSON merge patch, RFC 7386): `null` deletes a field, a list replaces the whole list.
   *
   * @param target with `resourceVersion` or `uid`, a compare-and-swap as `replace`
   */
  async mergePatch(
    target: ObjectTarget,
    patch: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<StoredObject> {
    const metadata = { ...(isMapping(patch.metadata) && patch.metadata), ...preconditionsOf(target) };
    return await this.#sendFor('patch', target, {
      method: 'PATCH',
      query: this.#asManager(),
      body: Object.keys(metadata).length > 0 ? { ...patch, metadata } : patch,
      bodyType: 'application/merge-patch+json',
      signal,
    });
  }

  /**
   * As `mergePatch`, but what the API's types say about lists counts (strategic merge patch): of those with keys, such as the
   * conditions of a Node, the entries that the patch does not name stay.
   *
   * @param target whichever has the name
   */
  async strategicPatch(
    target: ObjectName,
    patch: Readonly<Record<string, unknown>>,
    signal: AbortSignal,
  ): Promise<StoredObject> {
    return await this.#sendFor('patch', target, {
      method: 'PATCH',
      query: this.#asManager(),
      body: patch,
      bodyType: 'application/strategic-merge-patch+json',
      signal,
    });
  }

  /**
   * Server-side apply: makes the object if it does not exist, otherwise sets exactly the fields in `object` and removes
   * those that this field manager applied before and `object` no longer has. Refused with `conflict` when another manager
   * owns a field of `object` with another value.
   *
   * @param force takes such fields over instead. @default false
   */
  async apply(
    object: NewObject,
    { force = false }: { readonly force?: boolean },
    signal: AbortSignal,
  ): Promise<StoredObject> {
    return await this.#sendFor('apply', object.metadata, {
      method: 'PATCH',
      query: { ...this.#asManager(), force: String(force) },
      // JSON is YAML.
      body: this.#typed(object),
      bodyType: 'application/apply-patch+yaml',
      signal,
    });
  }

  /**
   * Deletes an object, in the background if it has dependents. An object with finalizers is still there afterwards.
   *
   * @param target with `resourceVersion` or `uid`: refused with `conflict` when they are no longer so
   */
  async delete(target: ObjectTarget, signal: AbortSignal): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: preconditionsOf(target) };
    await this.#send('delete', target, { method: 'DELETE', body, signal });
  }

  #typed(object: NewObject): Readonly<Record<string, unknown>> {
    const { group, version, kind } = this.#resource;
    return { ...object, apiVersion: group === '' ? version : `${group}/${version}`, kind };
  }

  #asManager(): Readonly<Record<string, string>> {
    return { fieldManager: this.#fieldManager };
  }

  /** As `#send`, for requests that are answered with the object. */
  async #sendFor(
    operation: ObjectOperation,
    target: ObjectName,
    request: Omit<ApiRequest, 'path'>,
  ): Promise<StoredObject> {
    const text = await this.#send(operation, target, request);
    try {
      return storedObject(JSON.parse(text));
    } catch (error) {
      throw this.#unreadable(operation, target, errorText(error));
    }
  }

  async #send(operation: ObjectOperation, target: ObjectName, request: Omit<ApiRequest, 'path'>): Promise<string> {
    const path = this.#pathOf(operation, target);
    try {
      const { body } = await this.#client.send({ ...request, path });
      const tooLong = () => this.#unreadable(operation, target, `it is longer than ${this.#largest} bytes`);
      return (await wholeBody(body, this.#largest, tooLong)).toString('utf8');
    } catch (error) {
      if (!(error instanceof ApiStatusError)) throw error;
      throw new ObjectError(operation, this.#resource, target, error);
    }
  }

  #unreadable(operation: ObjectOperation, target: ObjectName, why: string): NodeplaneError {
    const object = describeObject(this.#resource, target);
    return new NodeplaneError('ERR_API', `Cannot read the API server's answer to "${operation}" of ${object}: ${why}`, {
      facts: { operation, object },
    });
  }

  #pathOf(operation: ObjectOperation, { name, namespace }: ObjectName): string {
    const { name: resource, subresource, group, version, namespaced } = this.#resource;
    if (namespaced !== (namespace !== undefined)) {
      const found = namespaced ? 'no namespace is given' : `its kind has no namespaces, found "${namespace}"`;
      throw this.#unnameable(operation, { name }, found);
    }
    const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
    const parts = [...(namespace === undefined ? [] : ['namespaces', namespace]), resource];
    if (operation !== 'create') parts.push(name);
    if (subresource !== undefined) parts.push(subresource);
    for (const part of [name, ...parts]) {
      if (!isPathSegment(part)) throw this.#unnameable(operation, { name }, `"${part}" is no name`);
    }
    return `${root}/${parts.join('/')}`;
  }

  #unnameable(operation: ObjectOperation, target: ObjectName, why: string): NodeplaneError {
    return new NodeplaneError('ERR_API', `Cannot ${operation} ${describeObject(this.#resource, target)}: ${why}`);
  }
}

/** Names come from configurations too: none may lead to another path. The API's own names all have these characters. */
function isPathSegment(text: string): boolean {
  return /^[\w.:-]{1,253}$/.test(text) && text !== '.' && text !== '..';
}

function preconditionsOf({ uid, resourceVersion }: ObjectTarget): Readonly<Record<string, string>> {
  return { ...(uid !== undefined && { uid }), ...(resourceVersion !== undefined && { resourceVersion }) };
}

function storedObject(value: unknown): StoredObject {
  const metadata = isMapping(value) ? value.metadata : undefined;
  const isText = (field: unknown) => typeof field === 'string' && field !== '';
  if (!isMapping(metadata) || ![metadata.name, metadata.uid, metadata.resourceVersion].every(isText)) {
    throw new Error('expected an object with "metadata.name", "metadata.uid" and "metadata.resourceVersion"');
  }
  return value as StoredObject;
}

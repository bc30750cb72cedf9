import { isDeepStrictEqual } from 'node:util';
import { isMapping } from '../../../src/core/index.ts';
import { type ApiObject, type ApiResource, apiVersionOf, keyOf } from './api-object.ts';
import { AppliedFields } from './applied-fields.ts';
import { checkObject } from './check-object.ts';
import { mergePatch, strategicPatch } from './merge-patch.ts';
import type { ObjectHistory } from './object-history.ts';
import type { ApiCall } from './request.ts';
import { Refusal } from './status.ts';

export interface Outcome {
  readonly code: number;
  readonly body: object;
}

/** What came with a request. */
export interface Content {
  /** The Content-Type header. */
  readonly type: string | undefined;
  readonly text: string;
}

const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

/**
 * Requests about one object: get, create, update, patch (merge and apply) and delete, with the preconditions, refusals
 * and texts of a real server.
 *
 * What it does not do: JSON patch; strategic merge patch but for a Node; `generateName`; subresources but `status`;
 * finalizers, graceful deletion and dependents; `metadata.generation`; defaults and, but for `checkObject`, validation;
 * dry runs. `AppliedFields` says what its server-side apply leaves out.
 */
export class ObjectRequests {
  readonly #history: ObjectHistory;
  readonly #applied = new AppliedFields();

  constructor(history: ObjectHistory) {
    this.#history = history;
  }

  /** @throws Refusal */
  answer(call: ApiCall, content: Content): Outcome {
    switch (call.verb) {
      case 'get':
        return { code: 200, body: this.#existing(call) };
      case 'create':
        return this.#create(call, content);
      case 'update':
        return { code: 200, body: this.#update(call, parseObject(call, content)) };
      case 'patch':
        return this.#patch(call, content);
      case 'delete':
        return { code: 200, body: this.#delete(call, content) };
      default:
        throw new Refusal(405, `${call.verb} is not about one object`);
    }
  }

  /** Whether this is an apply that makes its object: that needs the permission to create, too. */
  isCreatingApply(call: ApiCall): boolean {
    return call.verb === 'patch' && !this.#history.get(call.resource, callKey(call));
  }

  #create(call: ApiCall, content: Content): Outcome {
    const { resource } = call;
    const object = parseObject(call, content);
    if (object.metadata.resourceVersion)
      throw new Refusal(500, 'resourceVersion should not be set on objects to be created', '');
    if (this.#history.get(resource, keyOf(object))) {
      throw new Refusal(409, `${qualified(resource)} "${object.metadata.name}" already exists`, 'AlreadyExists');
    }
    checkObject(object);
    const { uid: _, ...metadata } = object.metadata;
    return { code: 201, body: this.#history.put({ ...object, metadata }) };
  }

  #update(call: ApiCall, object: ApiObject): ApiObject {
    const live = this.#history.get(call.resource, callKey(call));
    // The uid is compared first, also with the missing one of an object that is not there.
    checkUid(call, object.metadata.uid, live);
    if (!live) throw notFound(call);
    const { resourceVersion } = object.metadata;
    if (!resourceVersion && call.resource.strictUpdates) {
      const problem = 'metadata.resourceVersion: Invalid value: 0: must be specified for an update';
      throw new Refusal(422, `${call.resource.kind}.${call.resource.group} "${call.name}" is invalid: ${problem}`);
    }
    checkVersion(call, resourceVersion, live);
    // Annotations and labels are written with the status; what the object is to be is not.
    return this.#store(live, call.ofStatus ? { ...object, spec: live.spec } : object);
  }

  #patch(call: ApiCall, content: Content): Outcome {
    switch (content.type?.split(';')[0]) {
      case 'application/merge-patch+json':
        return this.#merge(call, (live) => mergePatch(live, parseMapping(content)));
      case 'application/strategic-merge-patch+json':
        return this.#merge(call, (live) => strategicPatch(live, parseMapping(content)));
      case 'application/apply-patch+yaml':
        return this.#apply(call, parseObject(call, content));
      default:
        throw new Refusal(415, `the body of the request was in an unknown format: "${content.type}"`);
    }
  }

  #merge(call: ApiCall, patch: (live: ApiObject) => unknown): Outcome {
    const patched = patch(this.#existing(call));
    return { code: 200, body: this.#update(call, namedAs(call, patched)) };
  }

  #apply(call: ApiCall, wanted: ApiObject): Outcome {
    const manager = call.query.get('fieldManager') ?? '';
    if (manager === '') {
      const problem = 'fieldManager: Required value: is required for apply patch';
      throw new Refusal(422, `PatchOptions.meta.k8s.io "" is invalid: ${problem}`);
    }
    const live = this.#history.get(call.resource, callKey(call));
    checkUid(call, wanted.metadata.uid, live);
    if (live) checkVersion(call, wanted.metadata.resourceVersion, live);
    else if (wanted.metadata.resourceVersion) throw modified(call);
    const { conflicts, object, commit } = this.#applied.apply(
      live,
      wanted,
      manager,
      call.query.get('force') === 'true',
    );
    if (conflicts) {
      const list = conflicts.map((conflict) => `conflict with "${conflict.manager}": ${conflict.field}`).join(', ');
      throw new Refusal(
        409,
        `Apply failed with ${conflicts.length} conflict${conflicts.length > 1 ? 's' : ''}: ${list}`,
      );
    }
    checkObject(object, live);
    const stored = live ? this.#store(live, object) : this.#history.put(object);
    commit(stored);
    return { code: live ? 200 : 201, body: stored };
  }

  #delete(call: ApiCall, content: Content): object {
    const live = this.#existing(call);
    const options = content.text === '' ? {} : parseMapping(content);
    const { uid, resourceVersion } = isMapping(options.preconditions) ? options.preconditions : {};
    checkUid(call, uid, live);
    if (resourceVersion !== undefined && resourceVersion !== live.metadata.resourceVersion) {
      const [given, found] = [resourceVersion, live.metadata.resourceVersion];
      const text = `the ResourceVersion in the precondition (${given}) does not match the ResourceVersion in record (${found})`;
      throw cannotFulfil(call, `${text}. The object might have been modified`);
    }
    this.#history.delete(call.resource, callKey(call));
    const { name, group } = call.resource;
    const details = { name: call.name, ...(group !== '' && { group }), kind: name, uid: live.metadata.uid };
    return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details };
  }

  /** A write that changes nothing makes no new version, and no event. */
  #store(live: ApiObject, object: ApiObject): ApiObject {
    checkObject(object, live);
    return isDeepStrictEqual(withoutServerFields(live), withoutServerFields(object)) ? live : this.#history.put(object);
  }

  #existing(call: ApiCall): ApiObject {
    const object = this.#history.get(call.resource, callKey(call));
    if (!object) throw notFound(call);
    return object;
  }
}

function withoutServerFields({ metadata, ...fields }: ApiObject): object {
  const { uid, resourceVersion, creationTimestamp, managedFields, ...rest } = metadata;
  return { ...fields, metadata: rest };
}

function checkUid(call: ApiCall, uid: unknown, live: ApiObject | undefined): void {
  const found = live?.metadata.uid ?? '';
  if (uid === undefined || uid === '' || uid === found) return;
  throw cannotFulfil(call, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${found}`);
}

function checkVersion(call: ApiCall, version: string | undefined, live: ApiObject): void {
  if (version && version !== live.metadata.resourceVersion) throw modified(call);
}

function modified(call: ApiCall): Refusal {
  return cannotFulfil(call, MODIFIED);
}

function cannotFulfil({ resource, name }: ApiCall, why: string): Refusal {
  return new Refusal(409, `Operation cannot be fulfilled on ${qualified(resource)} "${name}": ${why}`);
}

function notFound({ resource, name }: ApiCall): Refusal {
  return new Refusal(404, `${qualified(resource)} "${name}" not found`);
}

/** `leases.coordination.k8s.io`. */
function qualified({ name, group }: ApiResource): string {
  return group === '' ? name : `${name}.${group}`;
}

function callKey({ name, namespace }: ApiCall): string {
  return namespace === undefined ? `${name}` : `${namespace}/${name}`;
}

/** The object of a request, which has to be what its path says. */
function parseObject(call: ApiCall, content: Content): ApiObject {
  return namedAs(call, parseMapping(content));
}

function namedAs({ resource, namespace, name }: ApiCall, value: unknown): ApiObject {
  const object = value as ApiObject;
  if (object.kind !== resource.kind || object.apiVersion !== apiVersionOf(resource)) {
    const found = `${object.apiVersion}, Kind=${object.kind}`;
    throw new Refusal(
      400,
      `the object provided is unrecognized: ${found} is not ${apiVersionOf(resource)}, Kind=${resource.kind}`,
    );
  }
  const metadata = { ...object.metadata, ...(namespace !== undefined && { namespace }) };
  if (object.metadata?.namespace !== undefined && object.metadata.namespace !== namespace) {
    throw new Refusal(400, 'the namespace of the provided object does not match the namespace sent on the request');
  }
  if (name !== undefined && metadata.name !== name) {
    throw new Refusal(400, `the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
  return { ...object, metadata };
}

function parseMapping({ text }: Content): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Refusal(400, `the body of the request is no JSON: ${error}`);
  }
  if (!isMapping(value)) throw new Refusal(400, 'the body of the request is no object');
  return value;
}

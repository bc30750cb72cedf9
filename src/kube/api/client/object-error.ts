import { ApiStatusError } from './api-client.ts';
import type { ObjectName, ObjectResource } from './api-object.ts';

/** What is done with an object, by the verbs of `kubectl`, which are those of a Role as well. */
export type ObjectOperation = 'get' | 'create' | 'patch' | 'delete';

/**
 * Why the server refused, for those who decide what to do next.
 *
 * - `alreadyExists`: an object of this name is there (409).
 * - `conflict`: it is not the object or version it should be (409). Read it again.
 * - `notFound`: the object, its namespace or the whole resource is not there (404).
 * - `gone`: what was asked for is no longer available (410).
 * - `forbidden`: RBAC or admission does not allow it (403).
 * - `invalid`: the object breaks a rule of its kind (422).
 * - `unavailable`: the server is busy, starting or broken (429, 5xx); the same request may succeed later.
 * - `other`: any other status.
 */
export type RefusalKind =
  | 'alreadyExists'
  | 'conflict'
  | 'notFound'
  | 'gone'
  | 'forbidden'
  | 'invalid'
  | 'unavailable'
  | 'other';

/** The API server refused to do something with an object. */
export class ObjectError extends ApiStatusError {
  readonly kind: RefusalKind;
  readonly operation: ObjectOperation;
  /** `Lease "kube-system/agent"`. */
  readonly object: string;

  constructor(operation: ObjectOperation, resource: ObjectResource, target: ObjectName, refusal: ApiStatusError) {
    const { attempt, status, text, retryAfterMs, reason } = refusal;
    const kind = kindOf(status, reason);
    const object = describeObject(resource, target);
    const needed = kind === 'forbidden' ? `; ${permissionFor(operation, resource, target)}` : '';
    super(`Cannot ${operation} ${object} (${attempt})`, status, `${text}${needed}`, {
      retryAfterMs,
      reason,
      facts: { operation, object, kind },
    });
    this.name = 'ObjectError';
    this.kind = kind;
    this.operation = operation;
    this.object = object;
  }
}

/** Whether the API server refused an operation on an object for one of these reasons. */
export function isRefused(error: unknown, ...kinds: readonly RefusalKind[]): boolean {
  return error instanceof ObjectError && kinds.includes(error.kind);
}

/** `Lease "kube-system/agent"`. */
export function describeObject({ kind }: ObjectResource, { name, namespace }: ObjectName): string {
  return `${kind} "${namespace === undefined ? '' : `${namespace}/`}${name}"`;
}

function kindOf(status: number, reason: string | undefined): RefusalKind {
  switch (status) {
    case 403:
      return 'forbidden';
    case 404:
      return 'notFound';
    case 409:
      return reason === 'AlreadyExists' ? 'alreadyExists' : 'conflict';
    case 410:
      return 'gone';
    case 422:
      return 'invalid';
    default:
      return status === 429 || status >= 500 ? 'unavailable' : 'other';
  }
}

function permissionFor(operation: ObjectOperation, resource: ObjectResource, { namespace }: ObjectName): string {
  const { name, subresource, group } = resource;
  const what = subresource === undefined ? name : `${name}/${subresource}`;
  const where = namespace === undefined ? '' : ` in namespace "${namespace}"`;
  return `this needs the RBAC verb "${operation}" on resource "${what}" of API group "${group}"${where}`;
}

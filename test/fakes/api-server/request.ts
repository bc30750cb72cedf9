import { type ApiResource, RESOURCES } from './api-object.ts';
import type { Misbehaviour } from './misbehaviour.ts';

/** A request as the server understands it. */
export interface ApiCall {
  readonly verb: 'list' | 'watch' | 'get' | 'create' | 'patch' | 'delete';
  readonly resource: ApiResource;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  /** The request is about the `status` of the object. */
  readonly ofStatus: boolean;
  readonly query: URLSearchParams;
}

/** A request as it was answered; for tests to look at. */
export interface RequestRecord {
  readonly method: string;
  readonly url: string;
  readonly status: number;
  /** The Content-Type of the answer. */
  readonly type: string;
  /** Undefined for a path the server does not have. */
  readonly verb: ApiCall['verb'] | undefined;
  readonly resource: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Understands `/api/v1/...` and `/apis/<group>/<version>/...`; undefined for what is not there. */
export function parseCall(method: string, url: string, { missingGroups }: Misbehaviour): ApiCall | undefined {
  const { pathname, searchParams: query } = new URL(url, 'https://server');
  const [, root, ...rest] = pathname.split('/');
  const group = root === 'apis' ? rest.shift() : '';
  const version = rest.shift();
  if (group === undefined || missingGroups.has(group)) return undefined;
  const namespace = rest[0] === 'namespaces' && rest.length > 2 ? rest.splice(0, 2)[1] : undefined;
  const [resourceName, name, subresource, ...others] = rest;
  if (others.length > 0) return undefined;
  const ofStatus = subresource === 'status';
  const resource = RESOURCES.find((candidate) => {
    return candidate.name === resourceName && candidate.group === group && candidate.version === version;
  });
  if (!resource || (subresource !== undefined && !(ofStatus && resource.hasStatus))) return undefined;
  const verb = verbOf(method, name, query);
  return verb && { verb, resource, namespace, name, ofStatus, query };
}

/** As roles name it: `nodes/status`. */
export function permissionOf({ resource: { name }, ofStatus }: Pick<ApiCall, 'resource' | 'ofStatus'>): string {
  return ofStatus ? `${name}/status` : name;
}

/** Undefined: this cannot be done with a collection, or with an object. */
function verbOf(method: string, name: string | undefined, query: URLSearchParams): ApiCall['verb'] | undefined {
  if (name === undefined) {
    if (method === 'POST') return 'create';
    if (method === 'GET') return query.get('watch') === 'true' ? 'watch' : 'list';
    return undefined;
  }
  return { GET: 'get', PATCH: 'patch', DELETE: 'delete' }[method] as ApiCall['verb'] | undefined;
}

export function isAllowed(call: Pick<ApiCall, 'verb' | 'resource' | 'ofStatus'>, { rules }: Misbehaviour): boolean {
  if (!rules) return true;
  const { verb, resource } = call;
  return rules.some(({ apiGroups, resources, verbs }) => {
    return includes(apiGroups, resource.group) && includes(resources, permissionOf(call)) && includes(verbs, verb);
  });
}

function includes(list: readonly string[], value: string): boolean {
  return list.includes(value) || list.includes('*');
}

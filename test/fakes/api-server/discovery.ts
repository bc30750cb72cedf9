import { type ApiResource, apiVersionOf, RESOURCES } from './api-object.ts';
import type { Misbehaviour } from './misbehaviour.ts';

/** What the server says it has, at `/api`, `/apis` and below; undefined: that is no such path. As JSON, and not all at once. */
export function discoveryAt(path: string, { missingGroups }: Misbehaviour): object | undefined {
  const present = RESOURCES.filter(({ group }) => !missingGroups.has(group));
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'] };
  if (path === '/apis') {
    const named = present.filter(({ group }) => group !== '');
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: named.map(groupOf) };
  }
  const version = path.replace(/^\/apis?\//, '');
  const resources = present.filter((resource) => apiVersionOf(resource) === version);
  if (resources.length === 0 || path.startsWith('/apis/') !== version.includes('/')) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: version,
    resources: resources.map(({ name, kind, namespaced }) => {
      return { name, singularName: kind.toLowerCase(), namespaced, kind, verbs: VERBS };
    }),
  };
}

const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'];

function groupOf(resource: ApiResource): object {
  const version = { groupVersion: apiVersionOf(resource), version: resource.version };
  return { name: resource.group, versions: [version], preferredVersion: version };
}

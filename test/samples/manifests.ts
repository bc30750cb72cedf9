import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { KINDS, type KubeObject, type Node } from '../../src/kube/index.ts';
import { makeNode } from '../fakes/service-objects.ts';

/** Objects as the YAML of a manifest, one document each; the objects themselves come from test/fakes/service-objects.ts. */
export function manifestOf(...objects: readonly KubeObject[]): string {
  return objects.map(documentOf).join('---\n');
}

/** Writes the manifest `name` as editors do: a complete file takes the place of the one before, so nobody reads half of it. */
export function saveManifest(folder: string, name: string, text: string): void {
  // No manifest by its name.
  const unfinished = join(folder, `.${name}.new`);
  writeFileSync(unfinished, text);
  renameSync(unfinished, join(folder, name));
}

/** The Node object of a node of a lab. */
export function nodeObject(
  {
    name,
    ips,
    podCidrs,
  }: { readonly name: string; readonly ips: readonly string[]; readonly podCidrs: readonly string[] },
  labels: Readonly<Record<string, string>> = {},
): Node {
  return makeNode(name, {
    labels,
    spec: { podCIDRs: podCidrs },
    status: { addresses: ips.map((address) => ({ type: 'InternalIP', address })) },
  });
}

function documentOf(object: KubeObject): string {
  const { apiVersion } = KINDS[object.kind];
  const { namespace, ...metadata } = object.metadata;
  const named = namespace === '' ? metadata : { ...metadata, namespace };
  // Anchors for what two objects share are allowed, but nobody writes them.
  return stringify({ apiVersion, ...asInApi(object), metadata: named }, { aliasDuplicateObjects: false });
}

/** Of a reference to a pod its name alone is kept. */
function asInApi(object: KubeObject): object {
  if (object.kind !== 'EndpointSlice' || !object.endpoints) return object;
  const endpoints = object.endpoints.map(({ targetRef: name, ...endpoint }) => {
    return name === undefined ? endpoint : { ...endpoint, targetRef: { kind: 'Pod', name } };
  });
  return { ...object, endpoints };
}

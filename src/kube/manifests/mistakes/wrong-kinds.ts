import { nearestWord } from '../../../core/index.ts';
import type { ManifestKinds } from '../manifest-kinds.ts';

/** The kinds of the API groups we read from, read or not (Kubernetes 1.36). */
const KINDS_OF_GROUPS: Readonly<Record<string, readonly string[]>> = {
  v1: (
    'Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod ' +
    'PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount'
  ).split(' '),
  'discovery.k8s.io/v1': ['EndpointSlice'],
  'networking.k8s.io/v1': 'IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR'.split(' '),
  'nodeplane.io/v1alpha1': ['PodCIDRBlock'],
};

/**
 * What is wrong with the kind of an object that is not read: that it is misspelt, or that its group has none of that name.
 * Undefined: it is one of the many that are none of our business.
 */
export function wrongKind(kind: string, apiVersion: unknown, kinds: ManifestKinds): string | undefined {
  const group = typeof apiVersion === 'string' ? KINDS_OF_GROUPS[apiVersion] : undefined;
  const all = Object.values(KINDS_OF_GROUPS).flat();
  if (all.includes(kind) || all.includes(kind.replace(/List$/, ''))) return undefined;
  const meant = nearestWord(kind, group ?? kinds.keys());
  if (meant !== undefined) return `The API has no kind "${kind}", and the object is not read; did you mean "${meant}"?`;
  if (!group) return undefined;
  const read = [...kinds.keys()].map((each) => `"${each}"`).join(', ');
  return `${String(apiVersion)} has no kind "${kind}", and the object is not read; those that are read are ${read}`;
}

/** A field at the top of an object that is not there, but is under another spelling: `Kind`, `apiversion`. */
export function misspelt(field: 'kind' | 'apiVersion', value: Readonly<Record<string, unknown>>): string {
  const found = Object.keys(value).find((name) => nearestWord(name, [field]) !== undefined && name !== field);
  return found === undefined ? '' : `; "${found}" is written "${field}"`;
}

import { type Cidr, isMapping } from '../../core/index.ts';
import type { MacvlanMode } from '../../netlink/route/index.ts';
import { objectionToInterfaceName } from '../protocol/environment.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import { cidrsAt, invalidKey, type Json, optional, optionalObject, optionalWord, textsAt } from '../protocol/json.ts';
import type { PodName } from './cni-args.ts';

/** Of an annotation in messages, in characters. */
const LONGEST_SHOWN = 64;
/** What a pod asks with; the first one counts. The second is openshift-sdn's. */
export const MACVLAN_ANNOTATIONS = ['nodeplane.io/assign-macvlan', 'pod.network.openshift.io/assign-macvlan'] as const;
/** The capability by which a runtime passes the annotations of pods: containerd from 1.5, CRI-O from 1.29. */
export const POD_ANNOTATIONS = 'io.kubernetes.cri.pod-annotations';
/** Among the masters: the link of the node's default route. */
export const DEFAULT_MASTER = 'default';
/** Passthru would take the master's frames from the node. */
const MACVLAN_MODES = ['private', 'bridge', 'vepa'] as const satisfies readonly MacvlanMode[];

/** The second interface of a pod that asks for one, as far as the configuration and the pod decide it. */
export interface MacvlanSettings {
  /** Who asks for which master with what annotation: the beginning of a refusal. */
  readonly request: string;
  /** The name of a link, or `DEFAULT_MASTER`. */
  readonly master: string;
  /** Names of links, and `DEFAULT_MASTER`. */
  readonly allowedMasters: readonly string[];
  readonly mode: (typeof MACVLAN_MODES)[number];
  /** For the plugin that gives the interface addresses, which is its key `type`; undefined: the pod configures it itself. */
  readonly ipam: MacvlanIpam | undefined;
  /** What the pod reaches through the pod network, besides the addresses of the master. */
  readonly routes: readonly Cidr[];
}

export type MacvlanIpam = Json & { readonly type: string };

/**
 * Parses key `macvlan`, and decides whether a pod that asks for the interface may have it.
 *
 * @param runtimeConfig what the runtime passes, keys already in their canonical spelling
 * @param pod undefined when the runtime names none
 * @returns undefined when the network has no such key or the pod does not ask
 * @throws CniError 7 for the key; 110 for a pod that is refused; 11 while the routes are not known
 */
export function parseMacvlan(raw: Json, runtimeConfig: Json, pod: PodName | undefined): MacvlanSettings | undefined {
  const key = optionalObject(raw, 'macvlan');
  if (!key) return undefined;
  const namespaces = textsAt(key, 'namespaces', 'macvlan.');
  const masters = textsAt(key, 'masters', 'macvlan.');
  const allowedMasters = masters.length > 0 ? masters : [DEFAULT_MASTER];
  const mode = optionalWord(key, 'mode', MACVLAN_MODES, 'macvlan.') ?? 'private';
  const ipam = macvlanIpamOf(key);
  const routes = cidrsAt(key, 'routes', 'macvlan.');
  const asked = askedBy(runtimeConfig);
  if (!asked) return undefined;
  const [annotation, value] = asked;
  const name = pod ? `${pod.namespace}/${pod.name}` : '';
  const shown = JSON.stringify(value.slice(0, LONGEST_SHOWN));
  const request = `Pod "${name}" asks for a macvlan by annotation ${annotation} ${shown}`;
  if (!namespaces.includes('*') && !(pod && namespaces.includes(pod.namespace))) {
    throw refused(request, `only pods of these namespaces may: ${listed(namespaces)}`);
  }
  const master = value === 'true' ? allowedMasters[0]! : value;
  const objection = master === DEFAULT_MASTER ? undefined : objectionToInterfaceName(master);
  if (objection) throw refused(request, `it must be "true" or the name of a link, and ${objection}`);
  // Whether a name is that of the default route's link is known when the kernel was asked.
  if (!allowedMasters.includes(master) && !allowedMasters.includes(DEFAULT_MASTER)) {
    throw refused(request, `only these links may be used: ${listed(allowedMasters)}`);
  }
  if (key.routes === null) {
    throw new CniError(
      CNI_ERROR.TRY_AGAIN_LATER,
      `${request}, and the Service CIDRs it needs routes to are not known yet`,
    );
  }
  return { request, master, allowedMasters, mode, ipam, routes };
}

/** The address management of the second interface; undefined without one. Throws CniError 7. */
export function macvlanIpamOf(key: Json): MacvlanIpam | undefined {
  const ipam = optionalObject(key, 'ipam', 'macvlan.');
  if (!ipam || Object.keys(ipam).length === 0) return undefined;
  const type = optional(ipam, 'type', 'string', 'macvlan.ipam.') ?? '';
  if (!/^[a-zA-Z0-9][\w.-]*$/.test(type)) {
    throw invalidKey('macvlan.ipam.type', type, 'it must be the name of a plugin');
  }
  return { ...ipam, type };
}

/** What a pod is not to have, with the reason. */
export function refused(request: string, why: string): CniError {
  return new CniError(CNI_ERROR.POD_REFUSED, `${request}: ${why}`);
}

/** `"eth0", "eth1"`, or `none`. */
export function listed(names: readonly string[]): string {
  return names.length === 0 ? 'none' : names.map((name) => `"${name}"`).join(', ');
}

/** The annotation and its value; undefined when the pod does not ask. */
function askedBy(runtimeConfig: Json): readonly [string, string] | undefined {
  const annotations = runtimeConfig[POD_ANNOTATIONS];
  if (!isMapping(annotations)) return undefined;
  for (const annotation of MACVLAN_ANNOTATIONS) {
    const value = Object.hasOwn(annotations, annotation) ? annotations[annotation] : undefined;
    if (typeof value === 'string') return value === '' || value === 'false' ? undefined : [annotation, value];
  }
  return undefined;
}

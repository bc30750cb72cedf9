import { isMapping, nearestWord, tryParseCidr, tryParseIp } from '../../../core/index.ts';
import { describeValue, type FieldPath, type FieldProblem } from '../../objects/field-reader.ts';
import { KNOWN_ANNOTATIONS, SERVICE_NAME_LABEL } from '../../objects/known-names.ts';
import type { EndpointSlice, KubeKind, KubeObject, KubeObjectOf, Node, Service } from '../../objects/types.ts';

/** `type` of a Node's address, in the API. The first two are addresses, the others names. */
const ADDRESS_TYPES = ['InternalIP', 'ExternalIP', 'Hostname', 'InternalDNS', 'ExternalDNS'];
/** Annotations of this prefix are ours, all of them. */
const OUR_PREFIX = 'nodeplane.io/';

/**
 * Values that an API server would have refused, or that do nothing, in an object that can be used without them.
 *
 * @param raw as it was written: of labels and annotations, the object has only those that are known
 */
export function doubtfulValues(object: KubeObject, raw: unknown): readonly FieldProblem[] {
  const found: FieldProblem[] = [];
  const tell: Tell = (path, message) => void found.push({ path, message });
  const { kind } = object;
  (BY_KIND[kind] as (object: KubeObject, raw: unknown, tell: Tell) => void)(object, raw, tell);
  for (const name of keysBelow(raw, 'annotations')) {
    if (!name.startsWith(OUR_PREFIX) || KNOWN_ANNOTATIONS.has(name)) continue;
    const meant = nearestWord(name, KNOWN_ANNOTATIONS);
    const remedy = meant === undefined ? 'take it out' : `did you mean "${meant}"?`;
    tell(['metadata', 'annotations', name], `Nothing reads an annotation of this name; ${remedy}`);
  }
  return found;
}

type Tell = (path: FieldPath, message: string) => void;

const BY_KIND: { readonly [K in KubeKind]: (object: KubeObjectOf<K>, raw: unknown, tell: Tell) => void } = {
  Service: lookAtService,
  EndpointSlice: lookAtSlice,
  Node: lookAtNode,
  ServiceCIDR: () => {},
  PodCIDRBlock: () => {},
};

function lookAtService({ spec }: Service, _: unknown, tell: Tell): void {
  for (const [index, text] of (spec.loadBalancerSourceRanges ?? []).entries()) {
    if (tryParseCidr(text.trim())) continue;
    const ip = tryParseIp(text.trim());
    const remedy = ip ? `write "${text.trim()}/${ip.family === 'IPv4' ? 32 : 128}"` : 'correct it or take it out';
    const message = `Expected a CIDR such as "192.0.2.0/24", found ${describeValue(text)}, which lets nobody in; ${remedy}`;
    tell(['spec', 'loadBalancerSourceRanges', index], message);
  }
  for (const [index, text] of (spec.externalIPs ?? []).entries()) {
    if (tryParseIp(text)) continue;
    const remedy = tryParseCidr(text) ? 'give single addresses' : 'correct it or take it out';
    const message = `Expected an IP address, found ${describeValue(text)}, which is not served; ${remedy}`;
    tell(['spec', 'externalIPs', index], message);
  }
  if (spec.type === 'ExternalName') return;
  const [first = ''] = spec.clusterIPs ?? [];
  const clusterIp = spec.clusterIP || first;
  if (clusterIp === '') {
    const remedy = 'nobody gives one out without an API server: write an address of your choice, or "None"';
    tell(['spec', 'clusterIP'], `Required, but missing, and the Service is not served; ${remedy}`);
  } else if (clusterIp !== 'None' && (spec.ports ?? []).length === 0) {
    tell(['spec', 'ports'], 'Expected at least one port, found none, and nothing is served; add one');
  }
}

function lookAtSlice({ metadata }: EndpointSlice, raw: unknown, tell: Tell): void {
  if (metadata.labels?.[SERVICE_NAME_LABEL]) return;
  const similar = nearestWord(SERVICE_NAME_LABEL, keysBelow(raw, 'labels'));
  const remedy = similar === undefined ? 'give it the name of its Service' : `"${similar}" stands in its place`;
  const message = `Required, but missing, so no Service has these endpoints; ${remedy}`;
  tell(['metadata', 'labels', SERVICE_NAME_LABEL], message);
}

function lookAtNode({ status }: Node, _: unknown, tell: Tell): void {
  for (const [index, { type, address }] of (status?.addresses ?? []).entries()) {
    const path = ['status', 'addresses', index];
    if (!ADDRESS_TYPES.includes(type)) {
      const meant = nearestWord(type, ADDRESS_TYPES);
      const remedy = meant === undefined ? 'correct it' : `did you mean "${meant}"?`;
      const known = ADDRESS_TYPES.map((each) => `"${each}"`).join(', ');
      tell([...path, 'type'], `Expected one of ${known}, found ${describeValue(type)}; ${remedy}`);
    } else if (type.endsWith('IP') && !tryParseIp(address)) {
      const remedy = 'correct it or take it out';
      tell(
        [...path, 'address'],
        `Expected an IP address, found ${describeValue(address)}, which is not used; ${remedy}`,
      );
    }
  }
}

/** The names of labels or annotations as they were written. */
function keysBelow(raw: unknown, field: 'labels' | 'annotations'): readonly string[] {
  const metadata = isMapping(raw) ? raw.metadata : undefined;
  const map = isMapping(metadata) ? metadata[field] : undefined;
  return isMapping(map) ? Object.keys(map) : [];
}

import { isMapping } from '../../core/index.ts';
import { type InterfaceName, objectionToInterfaceName } from '../protocol/environment.ts';
import { invalidKey, type Json, listAt, optional, optionalInteger } from '../protocol/json.ts';

/** An inclusive span of VLAN IDs, 1 to 4094. */
export interface VlanSpan {
  readonly first: number;
  readonly last: number;
}

/** The bridge of a network and how pods are connected to it; keys of the reference bridge plugin. */
export interface BridgeConfig {
  readonly name: InterfaceName;
  /** An IPv4 address on the bridge that belongs to no range is replaced. */
  readonly forceAddress: boolean;
  /** Frames may leave by the port they came in. */
  readonly hairpinMode: boolean;
  /** The bridge takes in every frame. */
  readonly promiscMode: boolean;
  /** The VLAN of the pod's untagged frames; 0: the bridge does not look at VLANs. */
  readonly vlan: number;
  /** VLANs whose frames the pod sends and gets tagged; sorted, not overlapping. */
  readonly vlanTrunk: readonly VlanSpan[];
  /** VLAN 1, which the kernel gives every port, stays on the pod's. */
  readonly preserveDefaultVlan: boolean;
  /** No frames to other isolated ports of the bridge. */
  readonly portIsolation: boolean;
  /** Frames of the pod with another source MAC are dropped. */
  readonly macspoofchk: boolean;
}

/** Keys of the configuration that this file reads. */
export const BRIDGE_KEYS = [
  'bridge',
  'forceAddress',
  'hairpinMode',
  'promiscMode',
  'vlan',
  'vlanTrunk',
  'preserveDefaultVlan',
  'portIsolation',
  'macspoofchk',
] as const;

const DEFAULT_BRIDGE = 'cni0';
const HIGHEST_VLAN = 4094;

/** Parses the keys of mode `bridge`. Throws CniError 7 naming the key. */
export function parseBridgeConfig(raw: Json): BridgeConfig {
  const promiscMode = optional(raw, 'promiscMode', 'boolean') ?? false;
  const hairpinMode = optional(raw, 'hairpinMode', 'boolean');
  if (promiscMode && hairpinMode) {
    throw invalidKey('hairpinMode', hairpinMode, 'it excludes "promiscMode": true, pods would get frames twice');
  }
  return {
    name: parseName(optional(raw, 'bridge', 'string')),
    forceAddress: optional(raw, 'forceAddress', 'boolean') ?? false,
    hairpinMode: hairpinMode ?? !promiscMode,
    promiscMode,
    vlan: optionalInteger(raw, 'vlan', { min: 0, max: HIGHEST_VLAN }) ?? 0,
    vlanTrunk: parseTrunk(raw),
    preserveDefaultVlan: optional(raw, 'preserveDefaultVlan', 'boolean') ?? false,
    portIsolation: optional(raw, 'portIsolation', 'boolean') ?? false,
    macspoofchk: optional(raw, 'macspoofchk', 'boolean') ?? false,
  };
}

/**
 * The link that carries the gateways' addresses: the bridge, but with a VLAN a link of its own, named as the reference
 * plugin does.
 */
export function gatewayLinkName({ name, vlan }: Pick<BridgeConfig, 'name' | 'vlan'>): string {
  return vlan > 0 ? `${name}.${vlan}` : name;
}

/** Whether the bridge must look at VLANs. */
export function filtersVlans({ vlan, vlanTrunk }: BridgeConfig): boolean {
  return vlan > 0 || vlanTrunk.length > 0;
}

function parseName(name: string | undefined): InterfaceName {
  const bridge = name || DEFAULT_BRIDGE;
  const objection = objectionToInterfaceName(bridge);
  if (objection) throw invalidKey('bridge', bridge, objection);
  return bridge as InterfaceName;
}

function parseTrunk(raw: Json): readonly VlanSpan[] {
  const spans = listAt(raw, 'vlanTrunk').map((value, i): VlanSpan => {
    const path = `vlanTrunk[${i}]`;
    if (!isMapping(value)) throw invalidKey(path, value, 'it must be an object');
    const id = (key: string) => optionalInteger(value, key, { min: 1, max: HIGHEST_VLAN, path: `${path}.` });
    const [single, first, last] = [id('id'), id('minID'), id('maxID')];
    if ((first === undefined) !== (last === undefined) || (single ?? first) === undefined) {
      throw invalidKey(path, value, 'give "id", or "minID" and "maxID"');
    }
    if (first === undefined || last === undefined) return { first: single!, last: single! };
    if (first > last) throw invalidKey(path, value, '"minID" is above "maxID"');
    if (single !== undefined) throw invalidKey(path, value, 'give "id", or "minID" and "maxID", not both');
    return { first, last };
  });
  return joinSpans(spans);
}

/** Sorted, with overlapping and adjoining spans made one. */
function joinSpans(spans: readonly VlanSpan[]): VlanSpan[] {
  const joined: VlanSpan[] = [];
  for (const span of [...spans].sort((a, b) => a.first - b.first)) {
    const before = joined.at(-1);
    if (before && span.first <= before.last + 1) {
      joined[joined.length - 1] = { first: before.first, last: Math.max(before.last, span.last) };
    } else joined.push(span);
  }
  return joined;
}

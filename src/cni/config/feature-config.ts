import { type Cidr, type IpAddress, isMapping, tryParseIp } from '../../core/index.ts';
import { CNI_ERROR, CniError } from '../protocol/errors.ts';
import {
  cidrsAt,
  invalidKey,
  type Json,
  listAt,
  optional,
  optionalInteger,
  optionalWord,
  textsAt,
  withKeysOf,
} from '../protocol/json.ts';
import type { PodName } from './cni-args.ts';
import { type MacvlanSettings, parseMacvlan } from './macvlan-config.ts';

/** What a pod sends out of its network carries the node's address. */
export interface MasqueradeSettings {
  /** Destinations besides its own subnet that see the pod. No key of the reference plugins. */
  readonly except: readonly Cidr[];
}

/** One port of the node that leads to the pod. */
export interface PortMapping {
  /** 1 to 65535. */
  readonly hostPort: number;
  /** 1 to 65535. */
  readonly containerPort: number;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  /** Undefined: every address of the node. `0.0.0.0` and `::` mean every address of their family. */
  readonly hostIp: IpAddress | undefined;
}

/** How mapped ports behave; keys of the reference portmap plugin. */
export interface PortMappingSettings {
  readonly mappings: readonly PortMapping[];
  /** Masquerade what the pod sends to its own mapped port, and what the node sends to it over loopback. */
  readonly snat: boolean;
  /** Masquerade whoever uses a mapped port. */
  readonly masqAll: boolean;
}

/** The shape of one direction's traffic. */
export interface TrafficShape {
  /** Bits per second. */
  readonly rate: number;
  /** Bits. At most what fits 32 bits of bytes. */
  readonly burst: number;
}

/** Limits of a pod's traffic as the pod sees it; at least one direction is given. */
export interface BandwidthSettings {
  readonly ingress: TrafficShape | undefined;
  readonly egress: TrafficShape | undefined;
}

/** Admission of the pod's traffic through firewalls of this node that forward nothing by themselves. */
export interface FirewallSettings {
  /** Which of the node's other pods with a policy of their own may send to the pod: all, those of its bridge, none. */
  readonly ingressPolicy: 'open' | 'same-bridge' | 'isolated';
}

/** What a network asks of a pod's attachment beyond the interface itself. */
export interface FeatureConfig {
  readonly ipMasq: MasqueradeSettings | undefined;
  /** Undefined: no mapping is asked for. */
  readonly portMappings: PortMappingSettings | undefined;
  readonly bandwidth: BandwidthSettings | undefined;
  readonly firewall: FirewallSettings | undefined;
  /** A second interface, which the pod asks for. */
  readonly macvlan: MacvlanSettings | undefined;
}

/** Keys of the configuration that this file reads. */
export const FEATURE_KEYS = [
  'ipMasq',
  'ipMasqBackend',
  'nonMasqueradeCidrs',
  'snat',
  'masqAll',
  'markMasqBit',
  'conditionsV4',
  'conditionsV6',
  'ingressRate',
  'ingressBurst',
  'egressRate',
  'egressBurst',
  'firewall',
  'ingressPolicy',
  'macvlan',
] as const;

const BANDWIDTH_KEYS = ['ingressRate', 'ingressBurst', 'egressRate', 'egressBurst'] as const;
const MAPPING_KEYS = ['hostPort', 'containerPort', 'protocol', 'hostIP'] as const;
/** The kernel counts a burst in bytes, in 32 bits. Runtimes ask for the largest they can write, which may be more. */
const LARGEST_BURST = (2 ** 32 - 1) * 8;

/**
 * Parses the keys of all features. All of a configuration is checked before anything is changed, while the code of a feature
 * is loaded when an attachment wants it; so the keys are read here, and not by each feature.
 *
 * @param runtimeConfig what the runtime passes, keys already in their canonical spelling
 * @param pod undefined when the runtime names none
 * @throws CniError 7 naming the key; what `parseMacvlan` throws
 */
export function parseFeatures(raw: Json, runtimeConfig: Json, pod?: PodName): FeatureConfig {
  return {
    ipMasq: parseMasquerade(raw),
    portMappings: parsePortMappings(raw, runtimeConfig),
    bandwidth: parseBandwidth(raw, runtimeConfig),
    firewall: parseFirewall(raw),
    macvlan: parseMacvlan(raw, runtimeConfig, pod),
  };
}

function parseMasquerade(raw: Json): MasqueradeSettings | undefined {
  optionalWord(raw, 'ipMasqBackend', ['iptables', 'nftables']);
  const except = cidrsAt(raw, 'nonMasqueradeCidrs');
  return (optional(raw, 'ipMasq', 'boolean') ?? false) ? { except } : undefined;
}

function parsePortMappings(raw: Json, runtimeConfig: Json): PortMappingSettings | undefined {
  // A packet mark is how the reference plugin asks itself for masquerading; here the rules know by themselves.
  optionalInteger(raw, 'markMasqBit', { min: 0, max: 31 });
  const settings = {
    snat: optional(raw, 'snat', 'boolean') ?? true,
    masqAll: optional(raw, 'masqAll', 'boolean') ?? false,
  };
  const conditions = (['conditionsV4', 'conditionsV6'] as const).map((key) => [key, textsAt(raw, key)] as const);
  const mappings = listAt(runtimeConfig, 'portMappings', 'runtimeConfig.').flatMap(parsePortMapping);
  if (mappings.length === 0) return undefined;
  for (const [key, words] of conditions) if (words.length > 0) throw unreadableConditions(key, words);
  return { mappings, ...settings };
}

/** Further matches, in the reference plugin's words: it passes them on to one of two programs. */
function unreadableConditions(key: string, words: readonly string[]): CniError {
  return new CniError(
    CNI_ERROR.UNSUPPORTED_FIELD,
    `Key "${key}" has the unsupported value ${JSON.stringify(words)}: it is text that only iptables or nft can read, and neither is run; remove it, or leave "portMappings" to the reference portmap plugin`,
  );
}

/** A mapping without host port asks for nothing: runtimes list container ports that way. */
function parsePortMapping(value: unknown, position: number): PortMapping[] {
  const path = `runtimeConfig.portMappings[${position}]`;
  if (!isMapping(value)) throw invalidKey(path, value, 'it must be an object');
  const mapping = withKeysOf(value, MAPPING_KEYS);
  const hostPort = optionalInteger(mapping, 'hostPort', { min: 0, max: 65535, path: `${path}.` });
  if (!hostPort) return [];
  const containerPort = optionalInteger(mapping, 'containerPort', { min: 1, max: 65535, path: `${path}.` });
  if (containerPort === undefined) throw invalidKey(path, value, 'key "containerPort" is missing');
  const protocol = (optional(mapping, 'protocol', 'string', `${path}.`) || 'tcp').toLowerCase();
  if (protocol !== 'tcp' && protocol !== 'udp' && protocol !== 'sctp') {
    throw invalidKey(`${path}.protocol`, protocol, 'it must be one of "tcp", "udp", "sctp"');
  }
  const hostIpText = optional(mapping, 'hostIP', 'string', `${path}.`) || undefined;
  const hostIp = hostIpText === undefined ? undefined : tryParseIp(hostIpText);
  if (hostIpText !== undefined && !hostIp) throw invalidKey(`${path}.hostIP`, hostIpText, 'it is no IP address');
  return [{ hostPort, containerPort, protocol, hostIp }];
}

/** Limits of the network are for all its pods and beat those of the runtime, as in the reference plugin. */
function parseBandwidth(raw: Json, runtimeConfig: Json): BandwidthSettings | undefined {
  const ofNetwork = shapesOf(raw, '');
  if (ofNetwork) return ofNetwork;
  const value = runtimeConfig.bandwidth;
  if (value === undefined || value === null) return undefined;
  if (!isMapping(value)) throw invalidKey('runtimeConfig.bandwidth', value, 'it must be an object');
  return shapesOf(withKeysOf(value, BANDWIDTH_KEYS), 'runtimeConfig.bandwidth.');
}

function shapesOf(raw: Json, path: string): BandwidthSettings | undefined {
  const shape = (direction: 'ingress' | 'egress'): TrafficShape | undefined => {
    const limits = { min: 0, max: Number.MAX_SAFE_INTEGER, path };
    const rate = optionalInteger(raw, `${direction}Rate`, limits) ?? 0;
    const burst = optionalInteger(raw, `${direction}Burst`, limits) ?? 0;
    if (rate === 0 && burst === 0) return undefined;
    if (rate === 0) throw invalidKey(`${path}${direction}Burst`, burst, `it needs ${direction}Rate beside it`);
    if (burst === 0) throw invalidKey(`${path}${direction}Rate`, rate, `it needs ${direction}Burst beside it`);
    return { rate, burst: Math.min(burst, LARGEST_BURST) };
  };
  const [ingress, egress] = [shape('ingress'), shape('egress')];
  return ingress || egress ? { ingress, egress } : undefined;
}

function parseFirewall(raw: Json): FirewallSettings | undefined {
  const firewall = optional(raw, 'firewall', 'boolean');
  const ingressPolicy = optionalWord(raw, 'ingressPolicy', ['open', 'same-bridge', 'isolated']);
  return asksForFirewall({ firewall, ingressPolicy }) ? { ingressPolicy: ingressPolicy ?? 'open' } : undefined;
}

/**
 * Whether a configuration has its pods let through. A policy alone asks for it, as it does in one that was written for the reference
 * plugin, unless it is refused.
 */
export function asksForFirewall(plugin: { readonly firewall?: unknown; readonly ingressPolicy?: unknown }): boolean {
  return plugin.firewall === undefined ? plugin.ingressPolicy !== undefined : plugin.firewall === true;
}

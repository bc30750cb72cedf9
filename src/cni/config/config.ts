import { isMapping } from '../../core/index.ts';
import { parseDataDir, parseIpamConfig, type StoreLocation } from '../../ipam/index.ts';
import { modeRules } from '../pod-networks.ts';
import { type NetworkHeader, parseHeader } from '../protocol/header.ts';
import { invalidConfig, invalidKey, type Json, optional, optionalObject, optionalWord } from '../protocol/json.ts';
import { parseDns } from '../protocol/parse-result.ts';
import { atLeast, type CniVersion } from '../protocol/versions.ts';
import { type BridgeConfig, parseBridgeConfig } from './bridge-config.ts';
import { parseCniArgs } from './cni-args.ts';
import { type FeatureConfig, parseFeatures } from './feature-config.ts';
import { type AddressManagement, NETWORK_MODES, type NetworkConfig } from './network-config.ts';
import { parseRuntimeConfig, type RuntimeConfig, runtimeConfigOf } from './runtime-config.ts';

/** Keys of the configuration that this file reads. */
export const NETWORK_KEYS = [
  'mode',
  'mtu',
  'isGateway',
  'isDefaultGateway',
  'enabledad',
  'disableContainerInterface',
  'ipam',
  'dns',
  'dataDir',
] as const;

const NATIVE_IPAM_TYPES = ['host-local', 'nodeplane'];
/** A file's name. */
const PLUGIN_TYPE = /^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/;
/** RFC 8200: no IPv6 link may have less. */
const SMALLEST_IPV6_MTU = 1280;
const SMALLEST_MTU = 68;
const LARGEST_MTU = 65535;

/**
 * Parses the configuration of an ADD or CHECK, with what the runtime adds to it.
 *
 * @param cniArgs CNI_ARGS
 * @throws CniError 4 or 7, or ERR_IPAM_CONFIG
 */
export function parseNetworkConfig({ cniVersion, name, raw }: NetworkHeader, cniArgs?: string): NetworkConfig {
  optional(raw, 'type', 'string');
  optionalObject(raw, 'capabilities');
  const isDefaultGateway = optional(raw, 'isDefaultGateway', 'boolean');
  const mode = optionalWord(raw, 'mode', NETWORK_MODES) ?? 'bridge';
  const rules = modeRules(mode);
  // As in the reference plugin, asking for the default gateway asks for the gateway.
  const isGateway =
    isDefaultGateway === true || rules.isAlwaysGateway || (optional(raw, 'isGateway', 'boolean') ?? true);
  const rawRuntimeConfig = runtimeConfigOf(raw);
  const args = parseCniArgs(cniArgs);
  const runtimeConfig = parseRuntimeConfig(raw, rawRuntimeConfig, args);
  const ipam = parseIpam(raw, runtimeConfig);
  parseDataDir(raw.dataDir, 'dataDir');
  refuseUntellable(cniVersion, ipam);
  const disableContainerInterface = optional(raw, 'disableContainerInterface', 'boolean') ?? false;
  if (disableContainerInterface && ipam.kind !== 'none') {
    throw invalidKey('disableContainerInterface', true, 'an interface that stays down can have no "ipam"');
  }
  const bridge = parseBridgeConfig(raw);
  rules.checkBridge(bridge, isGateway);
  const features = parseFeatures(raw, rawRuntimeConfig, args.pod);
  rules.checkFeatures(features, ipam);
  const dns = parseDns(optionalObject(raw, 'dns') ?? {}, 'dns.');
  return {
    name,
    mode,
    bridge: isolatedAsAsked(bridge, features),
    mtu: parseMtu(optional(raw, 'mtu', 'number'), ipam),
    isGateway,
    isDefaultGateway: isDefaultGateway ?? isGateway,
    enabledad: optional(raw, 'enabledad', 'boolean') ?? false,
    disableContainerInterface,
    mac: runtimeConfig.mac,
    ipam,
    dns: Object.keys(runtimeConfig.dns).length > 0 ? runtimeConfig.dns : dns,
    features,
  };
}

/** Policy `isolated` isolates the port as well: what ports of one bridge send each other the node does not forward. */
export function isolatedAsAsked(bridge: BridgeConfig, { firewall }: FeatureConfig): BridgeConfig {
  return firewall?.ingressPolicy === 'isolated' ? { ...bridge, portIsolation: true } : bridge;
}

/**
 * Where the reservations and notes of a network are. A DEL must find them with whatever the configuration has become
 * meanwhile: absent or unusable details give the default.
 */
export function storeLocation({ name: network, raw }: NetworkHeader): StoreLocation {
  const { type, dataDir = isNative(type) ? undefined : raw.dataDir }: Json = isMapping(raw.ipam) ? raw.ipam : {};
  try {
    return { dataDir: parseDataDir(dataDir), network };
  } catch {
    return { dataDir: parseDataDir(undefined), network };
  }
}

/**
 * The directory that holds those of all networks whose configuration says the same about it.
 *
 * @param text a configuration as it would be on stdin
 * @throws CniError 1, 6 or 7 when it is none
 */
export function dataDirectoryOf(text: string): string {
  return storeLocation(parseHeader(text)).dataDir;
}

/**
 * The plugin that manages a network's addresses in place of this one; undefined when that is this one. For DEL, CHECK, GC
 * and STATUS: a type that is no plugin's name gives undefined too.
 */
export function delegateOf({ raw }: NetworkHeader): string | undefined {
  const type = isMapping(raw.ipam) ? raw.ipam.type : undefined;
  if (typeof type !== 'string' || isNative(type) || !PLUGIN_TYPE.test(type)) return undefined;
  return type;
}

function isNative(ipamType: unknown): boolean {
  return NATIVE_IPAM_TYPES.some((type) => type === ipamType);
}

function parseIpam(raw: Json, runtimeConfig: RuntimeConfig): AddressManagement {
  const ipam = optionalObject(raw, 'ipam');
  if (!ipam || Object.keys(ipam).length === 0) {
    if (runtimeConfig.ips.length > 0)
      throw invalidConfig('Cannot give the addresses asked for: the network has no "ipam"');
    return { kind: 'none' };
  }
  const type = optional(ipam, 'type', 'string', 'ipam.') ?? '';
  if (type === '') {
    throw invalidConfig(`Cannot use ipam: key "type" is missing, give "${NATIVE_IPAM_TYPES.join('" or "')}"`);
  }
  if (!PLUGIN_TYPE.test(type)) throw invalidKey('ipam.type', type, 'it must be the name of a plugin, not a path');
  if (!isNative(type)) return { kind: 'delegate', type };
  return { kind: 'native', config: parseIpamConfig(ipam, runtimeConfig) };
}

/** Results before 0.3 have room for one address of a family; the reference plugins refuse to hand out more, too. */
function refuseUntellable(cniVersion: CniVersion, ipam: AddressManagement): void {
  if (ipam.kind !== 'native' || atLeast(cniVersion, '0.3.0')) return;
  const families = ipam.config.rangeSets.map(([range]) => range.family);
  if (new Set(families).size === families.length) return;
  throw invalidConfig(
    `Cannot use ipam.ranges: version ${cniVersion} of CNI has one address of a family, the sets give two; use "cniVersion": "0.3.0" or newer`,
  );
}

/** 0 means "not set", as for the reference plugin. */
function parseMtu(mtu: number | undefined, ipam: AddressManagement): number | undefined {
  if (mtu === undefined || mtu === 0) return undefined;
  const hasIpv6 = ipam.kind === 'native' && ipam.config.rangeSets.some(([range]) => range.family === 'IPv6');
  const smallest = hasIpv6 ? SMALLEST_IPV6_MTU : SMALLEST_MTU;
  if (!Number.isInteger(mtu) || mtu < smallest || mtu > LARGEST_MTU) {
    const why = hasIpv6 ? ', because the network has IPv6 addresses' : '';
    throw invalidConfig(
      `Cannot use mtu ${mtu}: it must be a whole number from ${smallest}${why} to ${LARGEST_MTU}, or 0`,
    );
  }
  return mtu;
}

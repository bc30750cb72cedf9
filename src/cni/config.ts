import { errorText } from '../core/index.ts';
import { type DnsSettings, type IpamConfig, parseDataDir, parseIpamConfig } from '../ipam/index.ts';
import { type InterfaceName, isNetworkName, type NetworkName, objectionToInterfaceName } from './environment.ts';
import { CNI_ERROR, CniError } from './errors.ts';
import { type CniVersion, isSupported, SUPPORTED_VERSIONS } from './versions.ts';

/** What every command needs of the configuration, and the rest unparsed. */
export interface NetworkHeader {
  readonly cniVersion: CniVersion;
  readonly name: NetworkName;
  readonly raw: Json;
}

/** A network configuration for ADD. */
export interface NetworkConfig {
  readonly cniVersion: CniVersion;
  readonly name: NetworkName;
  readonly bridge: InterfaceName;
  /** Undefined: what the kernel gives (1500). */
  readonly mtu: number | undefined;
  /** The bridge carries the gateways' addresses and the node forwards. */
  readonly isGateway: boolean;
  readonly isDefaultGateway: boolean;
  /** An IPv4 address on the bridge that belongs to no range is replaced. */
  readonly forceAddress: boolean;
  readonly hairpinMode: boolean;
  /** Undefined: the pod gets an interface without address. */
  readonly ipam: IpamConfig | undefined;
  readonly dns: DnsSettings;
}

type Json = Readonly<Record<string, unknown>>;

const DEFAULT_BRIDGE = 'cni0';
const IPAM_TYPES = ['host-local', 'nodeplane'];
/** RFC 8200: no IPv6 link may have less. */
const SMALLEST_IPV6_MTU = 1280;
const SMALLEST_MTU = 68;
const LARGEST_MTU = 65535;
/** Of the reference bridge plugin: refused while they ask for something, because leaving them out would go unnoticed. */
const UNSUPPORTED_KEYS = [
  'ipMasq',
  'promiscMode',
  'vlan',
  'vlanTrunk',
  'macspoofchk',
  'enabledad',
  'disableContainerInterface',
  'portIsolation',
];
/** What a runtime passes in `runtimeConfig` for capabilities this plugin does not have. In lower case. */
const UNSUPPORTED_CAPABILITIES = ['portmappings', 'bandwidth', 'ipranges', 'ips', 'mac'];

/**
 * Parses what all commands need. Checked in this order: JSON (code 6), version (1), name (7).
 *
 * @param text the configuration from stdin
 */
export function parseHeader(text: string): NetworkHeader {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (cause) {
    const found = text.trim() === '' ? 'standard input is empty' : errorText(cause);
    throw new CniError(CNI_ERROR.DECODING_FAILURE, `Cannot read the network configuration as JSON: ${found}`, {
      cause,
    });
  }
  if (!isObject(raw)) {
    throw new CniError(CNI_ERROR.DECODING_FAILURE, 'Cannot read the network configuration: it is no JSON object');
  }
  // The specification gives a configuration without version the oldest one.
  const cniVersion = raw.cniVersion === undefined || raw.cniVersion === '' ? '0.1.0' : raw.cniVersion;
  if (typeof cniVersion !== 'string' || !isSupported(cniVersion)) {
    throw new CniError(CNI_ERROR.INCOMPATIBLE_VERSION, 'incompatible CNI versions', {
      details: `config is ${JSON.stringify(cniVersion)}, plugin supports ${JSON.stringify(SUPPORTED_VERSIONS)}`,
    });
  }
  const { name } = raw;
  if (name === undefined || name === '') throw invalid('missing network name: key "name" is absent or empty');
  if (typeof name !== 'string' || !isNetworkName(name)) {
    throw invalid(
      `Cannot use name ${JSON.stringify(name)}: only letters, digits, "_", "." and "-" are allowed, beginning with a letter or digit`,
    );
  }
  return { cniVersion, name, raw };
}

/** Parses the configuration of an ADD. Throws CniError 2 or 7, or ERR_IPAM_CONFIG. `prevResult` is of no use here. */
export function parseNetworkConfig({ cniVersion, name, raw }: NetworkHeader): NetworkConfig {
  refuseUnsupported(raw);
  const isDefaultGateway = optional(raw, 'isDefaultGateway', 'boolean');
  // As in the reference plugin, asking for the default gateway asks for the gateway.
  const isGateway = isDefaultGateway === true || (optional(raw, 'isGateway', 'boolean') ?? true);
  const ipam = parseIpam(raw.ipam);
  return {
    cniVersion,
    name,
    bridge: parseBridge(optional(raw, 'bridge', 'string')),
    mtu: parseMtu(optional(raw, 'mtu', 'number'), ipam),
    isGateway,
    isDefaultGateway: isDefaultGateway ?? isGateway,
    forceAddress: optional(raw, 'forceAddress', 'boolean') ?? false,
    hairpinMode: optional(raw, 'hairpinMode', 'boolean') ?? true,
    ipam,
    dns: parseDns(raw.dns),
  };
}

/**
 * The directory of reservations for a DEL, which must work with whatever the configuration has become meanwhile: absent or
 * unusable details give the default.
 */
export function reservationsFor({ raw }: NetworkHeader): string {
  try {
    return parseDataDir(isObject(raw.ipam) ? raw.ipam.dataDir : undefined);
  } catch {
    return parseDataDir(undefined);
  }
}

function parseIpam(value: unknown): IpamConfig | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw invalid(`Cannot use ipam ${JSON.stringify(value)}: it must be an object`);
  if (Object.keys(value).length === 0) return undefined;
  const type = optional(value, 'type', 'string', 'ipam.') ?? '';
  if (type === '') throw invalid(`Cannot use ipam: key "type" is missing, give "${IPAM_TYPES.join('" or "')}"`);
  if (!IPAM_TYPES.includes(type)) {
    throw unsupported('ipam.type', type, `supported are "${IPAM_TYPES.join('" and "')}"`);
  }
  return parseIpamConfig(value);
}

function parseBridge(name: string | undefined): InterfaceName {
  const bridge = name || DEFAULT_BRIDGE;
  const objection = objectionToInterfaceName(bridge);
  if (objection) throw invalid(`Cannot use bridge "${bridge}": ${objection}`);
  return bridge as InterfaceName;
}

/** 0 means "not set", as for the reference plugin. */
function parseMtu(mtu: number | undefined, ipam: IpamConfig | undefined): number | undefined {
  if (mtu === undefined || mtu === 0) return undefined;
  const hasIpv6 = ipam?.rangeSets.some(([range]) => range.family === 'IPv6') ?? false;
  const smallest = hasIpv6 ? SMALLEST_IPV6_MTU : SMALLEST_MTU;
  if (!Number.isInteger(mtu) || mtu < smallest || mtu > LARGEST_MTU) {
    const why = hasIpv6 ? ', because the network has IPv6 addresses' : '';
    throw invalid(`Cannot use mtu ${mtu}: it must be a whole number from ${smallest}${why} to ${LARGEST_MTU}, or 0`);
  }
  return mtu;
}

function parseDns(value: unknown): DnsSettings {
  if (value === undefined || value === null) return {};
  if (!isObject(value)) throw invalid(`Cannot use dns ${JSON.stringify(value)}: it must be an object`);
  const texts = (key: string): readonly string[] => {
    const list = value[key] ?? [];
    if (!Array.isArray(list) || list.some((item) => typeof item !== 'string')) {
      throw invalid(`Cannot use dns.${key} ${JSON.stringify(list)}: it must be a list of strings`);
    }
    return list as string[];
  };
  const [nameservers, search, options] = [texts('nameservers'), texts('search'), texts('options')];
  const domain = optional(value, 'domain', 'string', 'dns.');
  return {
    ...(nameservers.length > 0 && { nameservers }),
    ...(domain && { domain }),
    ...(search.length > 0 && { search }),
    ...(options.length > 0 && { options }),
  };
}

function refuseUnsupported(raw: Json): void {
  for (const key of UNSUPPORTED_KEYS) {
    if (asksForSomething(raw[key])) throw unsupported(key, raw[key], 'remove it');
  }
  if (!isObject(raw.runtimeConfig)) return;
  for (const [key, value] of Object.entries(raw.runtimeConfig)) {
    // Go's decoder does not mind the case of keys, and runtimes rely on it.
    if (UNSUPPORTED_CAPABILITIES.includes(key.toLowerCase()) && asksForSomething(value)) {
      throw unsupported(`runtimeConfig.${key}`, value, `do not declare the capability "${key}"`);
    }
  }
}

function asksForSomething(value: unknown): boolean {
  return typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value);
}

function unsupported(key: string, value: unknown, remedy: string): CniError {
  return new CniError(
    CNI_ERROR.UNSUPPORTED_FIELD,
    `Key "${key}" has the unsupported value ${JSON.stringify(value)}, ${remedy}`,
  );
}

interface JsonTypes {
  readonly boolean: boolean;
  readonly string: string;
  readonly number: number;
}

function optional<T extends keyof JsonTypes>(raw: Json, key: string, type: T, path = ''): JsonTypes[T] | undefined {
  const value = raw[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== type) throw invalid(`Cannot use ${path}${key} ${JSON.stringify(value)}: it must be a ${type}`);
  return value as JsonTypes[T];
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(message: string): CniError {
  return new CniError(CNI_ERROR.INVALID_NETWORK_CONFIG, message);
}

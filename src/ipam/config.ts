import { isAbsolute } from 'node:path';
import {
  addressBits,
  type Cidr,
  type IpAddress,
  type IpSpan,
  NODE_PATHS,
  NodeplaneError,
  parseCidr,
  spanOfCidr,
  tryParseIp,
} from '../core/index.ts';
import { parseRangeSets, type RangeSet, type RangeText } from './ranges/range.ts';

/** Numbers that a route may have from CNI 1.1.0 on. */
export interface RouteNumbers {
  readonly mtu?: number | undefined;
  readonly advmss?: number | undefined;
  /** The metric. */
  readonly priority?: number | undefined;
  /** The number of the routing table. */
  readonly table?: number | undefined;
  /** RT_SCOPE_*. */
  readonly scope?: number | undefined;
}

export const ROUTE_NUMBERS = ['mtu', 'advmss', 'priority', 'table', 'scope'] as const satisfies (keyof RouteNumbers)[];

/** A route for the pod. */
export interface IpamRoute extends RouteNumbers {
  readonly destination: Cidr;
  /** @default the gateway of the pod's address of the same family */
  readonly gateway: IpAddress | undefined;
}

/** The `ipam` object of a network configuration, checked. */
export interface IpamConfig {
  /** One address is handed out per set. */
  readonly rangeSets: readonly RangeSet[];
  readonly routes: readonly IpamRoute[];
  /** Absolute; the network's directory lies below it. */
  readonly dataDir: string;
  /** A resolv.conf file for the result's `dns`. */
  readonly resolvConf: string | undefined;
  /** Not handed out unless asked for; a key of ours. */
  readonly exclude: readonly IpSpan[];
  /** Addresses the runtime asks for; each must lie in a range set of its own. */
  readonly requested: readonly IpAddress[];
}

/** What a runtime adds to the configuration for one attachment. */
export interface IpamRuntimeConfig {
  /** Range sets to put before those of the configuration, unparsed. */
  readonly ipRanges?: unknown;
  /** Addresses asked for. */
  readonly ips?: readonly IpAddress[];
}

/** Keys of the `ipam` object that are read, with `type`. */
export const IPAM_KEYS = [
  'type',
  'ranges',
  'subnet',
  'rangeStart',
  'rangeEnd',
  'gateway',
  'routes',
  'dataDir',
  'resolvConf',
  'exclude',
] as const;

type Json = Readonly<Record<string, unknown>>;

/**
 * Parses host-local's configuration keys. The old form (`subnet`, `rangeStart`, … beside `type`) is set 0, before `ranges`.
 * Keys it does not know are ignored, as the CNI specification demands.
 *
 * @param runtimeConfig what the runtime adds
 * @throws ERR_IPAM_CONFIG naming key, value and reason
 */
export function parseIpamConfig(ipam: Json, runtimeConfig: IpamRuntimeConfig = {}): IpamConfig {
  const sets = rangeSetsAt(runtimeConfig.ipRanges, 'runtimeConfig.ipRanges');
  if (optionalText(ipam.subnet, 'ipam.subnet') !== undefined) sets.push([rangeText(ipam, 'ipam')]);
  sets.push(...rangeSetsAt(ipam.ranges, 'ipam.ranges'));
  if (sets.length === 0) {
    throw new NodeplaneError(
      'ERR_IPAM_CONFIG',
      'Cannot use ipam: it names no address range, give "ranges" or "subnet"',
    );
  }
  return {
    rangeSets: parseRangeSets(sets, 'ipam.ranges'),
    routes: arrayAt(ipam.routes, 'ipam.routes').map((route, i) => parseRoute(route, `ipam.routes[${i}]`)),
    dataDir: parseDataDir(ipam.dataDir),
    resolvConf: optionalText(ipam.resolvConf, 'ipam.resolvConf'),
    exclude: arrayAt(ipam.exclude, 'ipam.exclude').map((text, i) => parseExclusion(text, `ipam.exclude[${i}]`)),
    requested: runtimeConfig.ips ?? [],
  };
}

function rangeSetsAt(value: unknown, path: string): RangeText[][] {
  return arrayAt(value, path).map((set, i) =>
    arrayAt(set, `${path}[${i}]`).map((range, j) => rangeText(range, `${path}[${i}][${j}]`)),
  );
}

/** One address, or all of a block. */
function parseExclusion(value: unknown, path: string): IpSpan {
  const text = optionalText(value, path) ?? '';
  const ip = tryParseIp(text);
  try {
    return spanOfCidr(ip ? { address: ip, prefixLength: addressBits(ip.family) } : parseCidr(text));
  } catch {
    throw invalid(path, value, 'it is neither an address nor a block, such as "10.244.1.0/28"');
  }
}

/** The directory that a key names, as a rule `ipam.dataDir`; the default when it is absent or empty. */
export function parseDataDir(value: unknown, path = 'ipam.dataDir'): string {
  const dataDir = optionalText(value, path) ?? NODE_PATHS.cniDataDir;
  if (!isAbsolute(dataDir)) throw invalid(path, dataDir, 'it must be an absolute path');
  return dataDir;
}

function rangeText(value: unknown, path: string): RangeText {
  const range = objectAt(value, path);
  const subnet = optionalText(range.subnet, `${path}.subnet`);
  if (subnet === undefined) {
    throw new NodeplaneError('ERR_IPAM_CONFIG', `Cannot use ${path}: key "subnet" is missing`, { facts: { path } });
  }
  return {
    subnet,
    rangeStart: optionalText(range.rangeStart, `${path}.rangeStart`),
    rangeEnd: optionalText(range.rangeEnd, `${path}.rangeEnd`),
    gateway: optionalText(range.gateway, `${path}.gateway`),
  };
}

function parseRoute(value: unknown, path: string): IpamRoute {
  const route = objectAt(value, path);
  const destination = optionalText(route.dst, `${path}.dst`) ?? '';
  const gatewayText = optionalText(route.gw, `${path}.gw`);
  const gateway = gatewayText === undefined ? undefined : tryParseIp(gatewayText);
  if (gatewayText !== undefined && !gateway) throw invalid(`${path}.gw`, gatewayText, 'it is no IP address');
  let parsed: Cidr;
  try {
    parsed = parseCidr(destination);
  } catch {
    throw invalid(`${path}.dst`, destination, 'it is no destination, such as "0.0.0.0/0"');
  }
  if (gateway && gateway.family !== parsed.address.family) {
    throw invalid(`${path}.gw`, gatewayText, `it is no ${parsed.address.family} address as the destination is`);
  }
  const numbers = Object.fromEntries(
    ROUTE_NUMBERS.flatMap((key) => {
      const value = wholeNumber(route[key], `${path}.${key}`);
      return value === undefined ? [] : [[key, value]];
    }),
  );
  return { destination: parsed, gateway, ...numbers };
}

function wholeNumber(value: unknown, path: string): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Number.isInteger(value) || (value as number) < 0 || (value as number) > 0xffffffff) {
    throw invalid(path, value, 'it must be a whole number');
  }
  return value as number;
}

/** Absent and empty mean the same, as they do to host-local. */
function optionalText(value: unknown, path: string): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw invalid(path, value, 'it must be a string');
  return value;
}

function arrayAt(value: unknown, path: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(path, value, 'it must be a list');
  return value;
}

function objectAt(value: unknown, path: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(path, value, 'it must be an object');
  }
  return value as Json;
}

function invalid(path: string, value: unknown, reason: string): NodeplaneError {
  const text = typeof value === 'string' ? `"${value}"` : JSON.stringify(value);
  return new NodeplaneError('ERR_IPAM_CONFIG', `Cannot use ${path} ${text}: ${reason}`, {
    facts: { path, value: text },
  });
}

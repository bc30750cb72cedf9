import { isAbsolute } from 'node:path';
import { type Cidr, type IpAddress, NodeplaneError, parseCidr, tryParseIp } from '../core/index.ts';
import { parseRangeSets, type RangeSet, type RangeText } from './range.ts';

/** host-local's default, so that a node's reservations survive a change of the plugin. */
export const DEFAULT_DATA_DIR = '/var/lib/cni/networks';

/** A route for the pod. */
export interface IpamRoute {
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
}

type Json = Readonly<Record<string, unknown>>;

/**
 * Parses host-local's configuration keys. The old form (`subnet`, `rangeStart`, … beside `type`) is set 0, before `ranges`.
 * Keys it does not know are ignored, as the CNI specification demands.
 *
 * @throws ERR_IPAM_CONFIG naming key, value and reason
 */
export function parseIpamConfig(ipam: Json): IpamConfig {
  const sets: RangeText[][] = [];
  if (ipam.subnet !== undefined) sets.push([rangeText(ipam, 'ipam')]);
  arrayAt(ipam.ranges, 'ipam.ranges').forEach((set, i) => {
    const ranges = arrayAt(set, `ipam.ranges[${i}]`);
    sets.push(ranges.map((range, j) => rangeText(range, `ipam.ranges[${i}][${j}]`)));
  });
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
  };
}

/** The directory that `ipam.dataDir` names; the default when it is absent or empty. */
export function parseDataDir(value: unknown): string {
  const dataDir = optionalText(value, 'ipam.dataDir') ?? DEFAULT_DATA_DIR;
  if (!isAbsolute(dataDir)) throw invalid('ipam.dataDir', dataDir, 'it must be an absolute path');
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
  return { destination: parsed, gateway };
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

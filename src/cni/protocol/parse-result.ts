import {
  type Cidr,
  type IpAddress,
  isMapping,
  parseAddressWithPrefix,
  parseCidr,
  tryParseIp,
} from '../../core/index.ts';
import { type DnsSettings, dnsSettings, ROUTE_NUMBERS } from '../../ipam/index.ts';
import { invalidKey, type Json, listAt, optional, optionalInteger, optionalObject, textsAt } from './json.ts';
import { parseMac } from './mac.ts';
import type { CniResult, ResultInterface, ResultIp, ResultRoute } from './result.ts';
import { atLeast, type CniVersion, isSupported } from './versions.ts';

const LARGEST_NUMBER = 0xffffffff;

/**
 * Reads a result object of another plugin, or of this one: `prevResult`, or what an IPAM plugin printed. It is read by its
 * own version, which is the configuration's if it has none.
 *
 * @param path where it stands, for messages
 * @throws CniError 7
 */
export function parseResult(value: unknown, configVersion: CniVersion, path: string): CniResult {
  if (!isMapping(value)) throw invalidKey(path, value, 'it must be an object');
  const version = optional(value, 'cniVersion', 'string', `${path}.`) || configVersion;
  if (!isSupported(version)) throw invalidKey(`${path}.cniVersion`, version, 'this version is not supported');
  const dns = parseDns(optionalObject(value, 'dns', `${path}.`) ?? {}, `${path}.dns.`);
  if (!atLeast(version, '0.3.0')) return { ...parseOldAddresses(value, path), interfaces: [], dns };
  return {
    interfaces: objectsAt(value, 'interfaces', path).map(([item, at]) => parseInterface(item, at)),
    ips: objectsAt(value, 'ips', path).map(([item, at]) => parseIp(item, at)),
    routes: objectsAt(value, 'routes', path).map(([item, at]) => parseRoute(item, at)),
    dns,
  };
}

/** `ip4` and `ip6`, each with routes of its own. */
function parseOldAddresses(value: Json, path: string): Pick<CniResult, 'ips' | 'routes'> {
  const ips: ResultIp[] = [];
  const routes: ResultRoute[] = [];
  for (const key of ['ip4', 'ip6']) {
    const at = `${path}.${key}`;
    const config = optionalObject(value, key, `${path}.`);
    if (!config) continue;
    ips.push({ address: cidrAt(config, 'ip', at, parseAddressWithPrefix), gateway: ipAt(config, 'gateway', at) });
    routes.push(...objectsAt(config, 'routes', at).map(([item, where]) => parseRoute(item, where)));
  }
  return { ips, routes };
}

function parseInterface(item: Json, path: string): ResultInterface {
  const text = (key: string) => optional(item, key, 'string', `${path}.`) || undefined;
  const mac = text('mac');
  return {
    name: text('name') ?? '',
    mac: mac === undefined ? undefined : parseMac(mac),
    mtu: optional(item, 'mtu', 'number', `${path}.`),
    sandbox: text('sandbox'),
    socketPath: text('socketPath'),
    pciID: text('pciID'),
  };
}

function parseIp(item: Json, path: string): ResultIp {
  return {
    address: cidrAt(item, 'address', path, parseAddressWithPrefix),
    gateway: ipAt(item, 'gateway', path),
    interface: optionalInteger(item, 'interface', { min: 0, max: LARGEST_NUMBER, path: `${path}.` }),
  };
}

function parseRoute(item: Json, path: string): ResultRoute {
  const numbers = ROUTE_NUMBERS.map((key) => [
    key,
    optionalInteger(item, key, { min: 0, max: LARGEST_NUMBER, path: `${path}.` }),
  ]);
  return {
    destination: cidrAt(item, 'dst', path, parseCidr),
    gateway: ipAt(item, 'gw', path),
    ...Object.fromEntries(numbers.filter(([, number]) => number !== undefined)),
  };
}

/** Reads the object `dns` of a result or a configuration. Throws CniError 7 naming the key, with `path` before it. */
export function parseDns(raw: Json, path: string): DnsSettings {
  return dnsSettings({
    nameservers: textsAt(raw, 'nameservers', path),
    domain: optional(raw, 'domain', 'string', path),
    search: textsAt(raw, 'search', path),
    options: textsAt(raw, 'options', path),
  });
}

function objectsAt(value: Json, key: string, path: string): (readonly [Json, string])[] {
  return listAt(value, key, `${path}.`).map((item, i) => {
    const at = `${path}.${key}[${i}]`;
    if (!isMapping(item)) throw invalidKey(at, item, 'it must be an object');
    return [item, at];
  });
}

function ipAt(item: Json, key: string, path: string): IpAddress | undefined {
  const text = optional(item, key, 'string', `${path}.`) || undefined;
  if (text === undefined) return undefined;
  const ip = tryParseIp(text);
  if (!ip) throw invalidKey(`${path}.${key}`, text, 'it is no IP address');
  return ip;
}

function cidrAt(item: Json, key: string, path: string, parse: (text: string) => Cidr): Cidr {
  const text = optional(item, key, 'string', `${path}.`) ?? '';
  try {
    return parse(text);
  } catch {
    throw invalidKey(`${path}.${key}`, text, 'it is no address with a prefix length, such as "10.244.1.2/24"');
  }
}

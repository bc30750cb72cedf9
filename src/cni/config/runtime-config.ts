import { type IpAddress, tryParseIp } from '../../core/index.ts';
import { type DnsSettings, dnsSettings } from '../../ipam/index.ts';
import { invalidKey, type Json, optional, optionalObject, textsAt, withKeysOf } from '../protocol/json.ts';
import { parseMac } from '../protocol/mac.ts';
import type { CniArgs } from './cni-args.ts';
import { POD_ANNOTATIONS } from './macvlan-config.ts';

/** What a runtime asks for one attachment, from all the places where it may say so. */
export interface RuntimeConfig {
  /** Addresses to hand out in place of free ones. */
  readonly ips: readonly IpAddress[];
  readonly mac: Uint8Array | undefined;
  /** Name servers of this pod; empty for none. */
  readonly dns: DnsSettings;
  /** host-local's `ranges`, put before those of the network; unparsed. */
  readonly ipRanges: unknown;
}

/** Capabilities served, in their canonical spelling. */
export const CAPABILITIES = ['portMappings', 'bandwidth', 'ips', 'mac', 'dns', 'ipRanges', POD_ANNOTATIONS] as const;

/** `runtimeConfig` with keys in canonical spelling; empty when absent. Throws CniError 7. */
export function runtimeConfigOf(raw: Json): Json {
  return withKeysOf(optionalObject(raw, 'runtimeConfig') ?? {}, CAPABILITIES);
}

/**
 * Gathers what the runtime asks for. A later place beats an earlier one: CNI_ARGS, `args.cni`, `runtimeConfig`. Addresses are
 * all taken, as by the reference host-local.
 *
 * @throws CniError 7
 */
export function parseRuntimeConfig(raw: Json, runtimeConfig: Json, args: CniArgs): RuntimeConfig {
  const ofArgs = optionalObject(optionalObject(raw, 'args') ?? {}, 'cni', 'args.') ?? {};
  const ips = [
    ...args.ips.map((text) => parseRequestedIp(text, 'CNI_ARGS IP')),
    ...textsAt(ofArgs, 'ips', 'args.cni.').map((text) => parseRequestedIp(text, 'args.cni.ips')),
    ...textsAt(runtimeConfig, 'ips', 'runtimeConfig.').map((text) => parseRequestedIp(text, 'runtimeConfig.ips')),
  ];
  const macs = [
    ['runtimeConfig.mac', optional(runtimeConfig, 'mac', 'string', 'runtimeConfig.')],
    ['args.cni.mac', optional(ofArgs, 'mac', 'string', 'args.cni.')],
    ['CNI_ARGS MAC', args.mac],
  ] as const;
  const mac = macs.find(([, text]) => text);
  return {
    ips,
    mac: mac && parseRequestedMac(mac[1]!, mac[0]),
    dns: parseRuntimeDns(runtimeConfig),
    ipRanges: runtimeConfig.ipRanges,
  };
}

/** A prefix length behind the address is allowed and means nothing: the subnet's counts. */
function parseRequestedIp(text: string, path: string): IpAddress {
  const ip = tryParseIp(text.replace(/\/\d{1,3}$/, ''));
  if (!ip) throw invalidKey(path, text, 'it is no IP address');
  return ip;
}

function parseRequestedMac(text: string, path: string): Uint8Array {
  const mac = parseMac(text);
  if (!mac) throw invalidKey(path, text, 'it is no MAC address, such as "0a:58:0a:f4:01:02"');
  // The lowest bit of the first byte marks group addresses, which no interface can have; nor can it have none.
  if ((mac[0]! & 1) !== 0 || mac.every((byte) => byte === 0)) {
    throw invalidKey(path, text, 'it is no address of a single interface');
  }
  return mac;
}

/** The capability names its keys differently than the `dns` object of configurations and results. */
function parseRuntimeDns(runtimeConfig: Json): DnsSettings {
  const path = 'runtimeConfig.dns.';
  const raw = withKeysOf(optionalObject(runtimeConfig, 'dns', 'runtimeConfig.') ?? {}, [
    'servers',
    'searches',
    'options',
  ]);
  return dnsSettings({
    nameservers: textsAt(raw, 'servers', path),
    search: textsAt(raw, 'searches', path),
    options: textsAt(raw, 'options', path),
  });
}

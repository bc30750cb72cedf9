import { addressBits, formatIp, type IpAddress, type IpFamily, ipFromBytes } from '../../core/index.ts';
import type { ServicePortPlan } from '../index.ts';
import type { Digits, KeySpace, TreeKey } from '../rules/index.ts';
import { hash16 } from './names.ts';

// The keys of the dispatch trees as 2-bit digits: an address (16 or 64 digits), then one digit of protocol, then eight
// of port. A tree leaves out the parts its rules do not look at.

const PROTOCOLS = ['tcp', 'udp', 'sctp'] as const;
/** A protocol as iptables spells it. */
export type ProtocolName = (typeof PROTOCOLS)[number];

const PORT_DIGITS = 8;

export function protocolName(protocol: ServicePortPlan['protocol']): ProtocolName {
  return protocol.toLowerCase() as ProtocolName;
}

export function addressKey(ip: IpAddress): TreeKey {
  return { text: formatIp(ip), digits: new Uint8Array(addressDigits(ip)) };
}

export function portKey(protocol: ProtocolName, port: number): TreeKey {
  return { text: `${protocol} ${port}`, digits: new Uint8Array(portDigits(protocol, port)) };
}

export function addressPortKey(ip: IpAddress, protocol: ProtocolName, port: number): TreeKey {
  return {
    text: `${formatIp(ip)} ${protocol} ${port}`,
    digits: new Uint8Array(addressDigits(ip).concat(portDigits(protocol, port))),
  };
}

/**
 * Prefixes of addresses, and below a single address of protocol and port. IPv4 blocks are named as they are written,
 * `KUBE-SVC-10.96.16.0/20`; what does not fit into 28 characters is named by a hash of what it matches, in lower case,
 * because a Service's own chains have theirs in upper case.
 */
export function addressSpace(family: IpFamily, chainPrefix: string): KeySpace {
  const addressLength = addressBits(family) / 2;
  const match = (digits: Digits, length: number) => {
    const bits = Math.min(length, addressLength) * 2;
    const destination = `-d ${formatIp(addressOf(digits, bits, addressLength))}/${bits}`;
    if (length <= addressLength) return destination;
    return `${destination} ${portMatch(portPrefix(digits.subarray(addressLength), length - addressLength))}`;
  };
  return {
    match,
    chainName(digits, length) {
      const readable = family === 'IPv4' && length <= addressLength;
      const text = match(digits, length).slice('-d '.length);
      return chainPrefix + (readable ? text : hash16(text).toLowerCase());
    },
  };
}

/** Prefixes of protocol and port, named `KUBE-EXT-tcp-30000-30063`. */
export function portSpace(chainPrefix: string): KeySpace {
  return {
    match: (digits, length) => portMatch(portPrefix(digits, length)),
    chainName(digits, length) {
      const { protocol, low, high } = portPrefix(digits, length);
      return `${chainPrefix}${protocol}-${low}-${high}`;
    },
  };
}

function addressDigits(ip: IpAddress): number[] {
  const digits: number[] = [];
  for (const byte of ip.bytes) digits.push(byte >> 6, (byte >> 4) & 3, (byte >> 2) & 3, byte & 3);
  return digits;
}

function portDigits(protocol: ProtocolName, port: number): number[] {
  const digits = [PROTOCOLS.indexOf(protocol)];
  for (let shift = 14; shift >= 0; shift -= 2) digits.push((port >> shift) & 3);
  return digits;
}

/** The network address of the first `bits` bits. */
function addressOf(digits: Digits, bits: number, addressLength: number): IpAddress {
  const bytes = new Uint8Array(addressLength / 4);
  for (let i = 0; i * 2 < bits; i++) bytes[i >> 2]! |= digits[i]! << (6 - 2 * (i & 3));
  return ipFromBytes(bytes);
}

interface PortPrefix {
  readonly protocol: ProtocolName;
  readonly low: number;
  readonly high: number;
}

/** @param length digits that are given, the protocol's included: 1 to 8 */
function portPrefix(digits: Digits, length: number): PortPrefix {
  const free = 2 * (PORT_DIGITS + 1 - length);
  let low = 0;
  for (let i = 1; i < length; i++) low = (low << 2) | digits[i]!;
  low <<= free;
  return { protocol: PROTOCOLS[digits[0]!]!, low, high: low + (1 << free) - 1 };
}

function portMatch({ protocol, low, high }: PortPrefix): string {
  const allPorts = low === 0 && high === 0xffff;
  return allPorts ? `-p ${protocol}` : `-p ${protocol} -m ${protocol} --dport ${low}:${high}`;
}

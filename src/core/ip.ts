import { NodeplaneError } from './errors.ts';

/** The two families, spelled as kube-proxy's metric labels and Kubernetes' `ipFamilies` spell them. */
export type IpFamily = 'IPv4' | 'IPv6';

/** An address: 4 or 16 bytes in network order. Text exists only at the edges. */
export interface IpAddress {
  readonly family: IpFamily;
  readonly bytes: Uint8Array;
}

/** An address block. `address` has no host bits set when made by `parseCidr(text)`. */
export interface Cidr {
  readonly address: IpAddress;
  readonly prefixLength: number;
}

/** Number of address bits of a family: 32 or 128. */
export function addressBits(family: IpFamily): 32 | 128 {
  return family === 'IPv4' ? 32 : 128;
}

/**
 * Parses an IPv4 or IPv6 address. IPv4 octets may have leading zeros and are read as decimal, as kube-proxy's
 * "sloppy" parsers do; zones (`%eth0`) are refused. Returns undefined for anything else.
 */
export function tryParseIp(text: string): IpAddress | undefined {
  if (text.includes(':')) {
    const bytes = parseIpv6(text);
    if (!bytes) return undefined;
    // ::ffff:a.b.c.d means the IPv4 address itself, as in Go's net.ParseIP.
    if (isV4Mapped(bytes)) return { family: 'IPv4', bytes: bytes.slice(12) };
    return { family: 'IPv6', bytes };
  }
  const bytes = parseIpv4(text);
  return bytes ? { family: 'IPv4', bytes } : undefined;
}

/** As `tryParseIp`, but throws ERR_ADDRESS_INVALID. */
export function parseIp(text: string): IpAddress {
  const ip = tryParseIp(text);
  if (!ip) {
    throw new NodeplaneError('ERR_ADDRESS_INVALID', `Cannot read "${text}" as an IP address`, { facts: { text } });
  }
  return ip;
}

/** Makes an address of raw bytes in network order (4 or 16; anything else throws ERR_ADDRESS_INVALID). */
export function ipFromBytes(bytes: Uint8Array): IpAddress {
  if (bytes.length !== 4 && bytes.length !== 16) {
    throw new NodeplaneError('ERR_ADDRESS_INVALID', `Cannot make an IP address of ${bytes.length} bytes: need 4 or 16`);
  }
  return { family: bytes.length === 4 ? 'IPv4' : 'IPv6', bytes: Uint8Array.from(bytes) };
}

/** Canonical text: dotted decimal, or RFC 5952 for IPv6. */
export function formatIp(ip: IpAddress): string {
  const b = ip.bytes;
  if (ip.family === 'IPv4') return `${b[0]}.${b[1]}.${b[2]}.${b[3]}`;
  return formatIpv6(b);
}

/** Orders by family (IPv4 first), then numerically. */
export function compareIp(a: IpAddress, b: IpAddress): number {
  if (a.bytes.length !== b.bytes.length) return a.bytes.length - b.bytes.length;
  for (let i = 0; i < a.bytes.length; i++) {
    const difference = a.bytes[i]! - b.bytes[i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

export function ipEquals(a: IpAddress, b: IpAddress): boolean {
  return compareIp(a, b) === 0;
}

export function isLoopback(ip: IpAddress): boolean {
  const { family, bytes } = ip;
  return family === 'IPv4' ? bytes[0] === 127 : isLoopback6(bytes);
}

/** What an address is if it cannot be that of one host others reach; see `specialRange`. */
export type SpecialRange = 'unspecified' | 'loopback' | 'link-local' | 'multicast';

/**
 * The range of an address that leads to no single host, or to none but this one; undefined for ordinary addresses. The
 * API server refuses these as endpoints and external IPs (ValidateEndpointIP in k8s.io/kubernetes/pkg/apis/core/validation;
 * of multicast the link-local part only).
 */
export function specialRange(ip: IpAddress): SpecialRange | undefined {
  const { family, bytes } = ip;
  const first = bytes[0]!;
  const second = bytes[1]!;
  if (first === 0 && bytes.every((byte) => byte === 0)) return 'unspecified';
  if (isLoopback(ip)) return 'loopback';
  if (family === 'IPv4') {
    if (first === 169 && second === 254) return 'link-local';
    return first >= 224 && first <= 239 ? 'multicast' : undefined;
  }
  if (first === 0xfe && (second & 0xc0) === 0x80) return 'link-local';
  return first === 0xff ? 'multicast' : undefined;
}

function isLoopback6(bytes: Uint8Array): boolean {
  return bytes[15] === 1 && bytes.every((byte, index) => byte === 0 || index === 15);
}

/** `ip:port`, with IPv6 in brackets: the form kube-proxy sorts and hashes endpoints by. */
export function formatIpPort(ip: IpAddress, port: number): string {
  return ip.family === 'IPv4' ? `${formatIp(ip)}:${port}` : `[${formatIp(ip)}]:${port}`;
}

/** Parses `address/prefix` and clears the host bits, as kube-proxy does. Throws ERR_ADDRESS_INVALID. */
export function parseCidr(text: string): Cidr {
  const { address, prefixLength } = parseAddressWithPrefix(text);
  return { address: networkOf(address, prefixLength), prefixLength };
}

/** Parses `address/prefix` and keeps the host bits, as an interface address is written. Throws ERR_ADDRESS_INVALID. */
export function parseAddressWithPrefix(text: string): Cidr {
  const slash = text.indexOf('/');
  const address = slash < 0 ? undefined : tryParseIp(text.slice(0, slash));
  const prefixText = text.slice(slash + 1);
  const prefixLength = /^\d{1,3}$/.test(prefixText) ? Number(prefixText) : Number.NaN;
  if (!address || !(prefixLength <= addressBits(address.family))) {
    throw new NodeplaneError('ERR_ADDRESS_INVALID', `Cannot read "${text}" as a CIDR: expected address/prefix-length`, {
      facts: { text },
    });
  }
  return { address, prefixLength };
}

export function formatCidr(cidr: Cidr): string {
  return `${formatIp(cidr.address)}/${cidr.prefixLength}`;
}

/** The address with all bits after the prefix cleared. */
export function networkOf(ip: IpAddress, prefixLength: number): IpAddress {
  const bytes = Uint8Array.from(ip.bytes);
  for (let i = 0; i < bytes.length; i++) {
    const keep = Math.min(8, Math.max(0, prefixLength - i * 8));
    bytes[i] = bytes[i]! & (0xff << (8 - keep));
  }
  return { family: ip.family, bytes };
}

/** Whether `ip` lies in `cidr`; false when the families differ. */
export function cidrContains(cidr: Cidr, ip: IpAddress): boolean {
  if (cidr.address.family !== ip.family) return false;
  return ipEquals(networkOf(ip, cidr.prefixLength), networkOf(cidr.address, cidr.prefixLength));
}

/** Character by character: it is asked for each of 100,000 endpoints. */
function parseIpv4(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(4);
  let index = 0;
  let value = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (value < 0 || index === 3) return undefined;
      bytes[index++] = value;
      value = -1;
    } else {
      if (code < ZERO || code > NINE) return undefined;
      value = Math.max(value, 0) * 10 + (code - ZERO);
      if (value > 255) return undefined;
    }
  }
  if (value < 0 || index !== 3) return undefined;
  bytes[3] = value;
  return bytes;
}

const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;

function parseIpv6(text: string): Uint8Array | undefined {
  let source = text;
  const lastColon = source.lastIndexOf(':');
  if (source.indexOf('.', lastColon) > 0) {
    // The last 32 bits may be written as an IPv4 address.
    const v4 = parseIpv4(source.slice(lastColon + 1));
    if (!v4) return undefined;
    const high = ((v4[0]! << 8) | v4[1]!).toString(16);
    const low = ((v4[2]! << 8) | v4[3]!).toString(16);
    source = `${source.slice(0, lastColon + 1)}${high}:${low}`;
  }
  const halves = source.split('::');
  if (halves.length > 2) return undefined;
  const left = parseGroups(halves[0]!);
  const right = halves.length === 2 ? parseGroups(halves[1]!) : [];
  if (!left || !right) return undefined;
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined;
  const groups = [...left, ...new Array<number>(missing).fill(0), ...right];
  const bytes = new Uint8Array(16);
  for (let i = 0; i < 8; i++) {
    bytes[i * 2] = groups[i]! >> 8;
    bytes[i * 2 + 1] = groups[i]! & 0xff;
  }
  return bytes;
}

function parseGroups(text: string): number[] | undefined {
  if (text === '') return [];
  const groups: number[] = [];
  for (const group of text.split(':')) {
    if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined;
    groups.push(Number.parseInt(group, 16));
  }
  return groups;
}

function isV4Mapped(bytes: Uint8Array): boolean {
  return bytes.subarray(0, 10).every((b) => b === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
}

function formatIpv6(bytes: Uint8Array): string {
  const groups: number[] = [];
  for (let i = 0; i < 16; i += 2) groups.push((bytes[i]! << 8) | bytes[i + 1]!);
  // RFC 5952 section 4.2: the longest run of two or more zero groups becomes "::", the first one on a tie.
  let bestStart = -1;
  let bestLength = 1;
  for (let i = 0; i < 8; ) {
    let length = 0;
    while (i + length < 8 && groups[i + length] === 0) length++;
    if (length > bestLength) {
      bestStart = i;
      bestLength = length;
    }
    i += length + 1;
  }
  const hex = (part: number[]): string => part.map((g) => g.toString(16)).join(':');
  if (bestStart < 0) return hex(groups);
  return `${hex(groups.slice(0, bestStart))}::${hex(groups.slice(bestStart + bestLength))}`;
}

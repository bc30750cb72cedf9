import { NodeplaneError } from '../errors.ts';

/** The two families, spelled as kube-proxy's metric labels and Kubernetes' `ipFamilies` spell them. */
export type IpFamily = 'IPv4' | 'IPv6';

/** Both, in the order in which they are dealt with and shown. */
export const IP_FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/** An address: 4 or 16 bytes in network order. Text exists only at the edges. */
export interface IpAddress {
  readonly family: IpFamily;
  readonly bytes: Uint8Array;
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

/** The family of what `tryParseIp` reads; undefined for anything else. An IPv4 address is not made for that. */
export function ipFamilyOf(text: string): IpFamily | undefined {
  if (text.includes(':')) return tryParseIp(text)?.family;
  return ipv4Number(text) < 0 ? undefined : 'IPv4';
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

/** Whether two addresses are the same, family included. */
export function ipEquals(a: IpAddress, b: IpAddress): boolean {
  return compareIp(a, b) === 0;
}

/** 127.0.0.0/8 and ::1. */
export function isLoopback({ family, bytes }: IpAddress): boolean {
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
  return withPort(formatIp(ip), port);
}

/** As `formatIpPort`. @param ip as a text without brackets */
export function withPort(ip: string, port: number | string): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}

function parseIpv4(text: string): Uint8Array | undefined {
  const value = ipv4Number(text);
  if (value < 0) return undefined;
  const bytes = keptBytes(4);
  bytes[0] = value >>> 24;
  bytes[1] = value >>> 16;
  bytes[2] = value >>> 8;
  bytes[3] = value;
  return bytes;
}

/** The address as a number; -1: it is none. Character by character: it is asked for each of 100,000 endpoints. */
function ipv4Number(text: string): number {
  let address = 0;
  let dots = 0;
  let value = -1;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === DOT) {
      if (value < 0 || dots === 3) return -1;
      address = address * 256 + value;
      dots++;
      value = -1;
    } else {
      if (code < ZERO || code > NINE) return -1;
      value = Math.max(value, 0) * 10 + (code - ZERO);
      if (value > 255) return -1;
    }
  }
  return value < 0 || dots !== 3 ? -1 : address * 256 + value;
}

/** Of each buffer that addresses share. Small: the last address of it keeps all of it. */
const SHARED_BYTES = 512;

let shared = new ArrayBuffer(0);
let sharedUsed = 0;

/** Memory for an address. A buffer of its own would cost each of 100,000 endpoints a hundred bytes more. */
function keptBytes(length: number): Uint8Array {
  if (sharedUsed + length > shared.byteLength) {
    shared = new ArrayBuffer(SHARED_BYTES);
    sharedUsed = 0;
  }
  const bytes = new Uint8Array(shared, sharedUsed, length);
  sharedUsed += length;
  return bytes;
}

const DOT = 0x2e;
const COLON = 0x3a;
const ZERO = 0x30;
const NINE = 0x39;

/** As `parseIpv4`, and for the same reason: in one pass, without a text or a list for each group. */
function parseIpv6(text: string): Uint8Array | undefined {
  const bytes = keptBytes(16);
  let length = 0;
  /** Where the zeros of "::" belong. */
  let gap = -1;
  let at = 0;
  if (text.startsWith('::')) {
    gap = 0;
    at = 2;
  }
  while (at < text.length) {
    if (length > 14) return undefined;
    let value = 0;
    let end = at;
    for (let digit = hexDigit(text, end); digit >= 0; digit = hexDigit(text, ++end)) value = (value << 4) | digit;
    if (text.charCodeAt(end) === DOT) {
      // The last 32 bits may be written as an IPv4 address.
      const v4 = length <= 12 ? parseIpv4(text.slice(at)) : undefined;
      if (!v4) return undefined;
      bytes.set(v4, length);
      length += 4;
      break;
    }
    if (end === at || end - at > 4) return undefined;
    bytes[length++] = value >> 8;
    bytes[length++] = value & 0xff;
    if (end === text.length) break;
    if (text.charCodeAt(end) !== COLON || end + 1 === text.length) return undefined;
    at = end + 1;
    if (text.charCodeAt(at) === COLON) {
      if (gap >= 0) return undefined;
      gap = length;
      at++;
    }
  }
  if (gap < 0) return length === 16 ? bytes : undefined;
  if (length > 14) return undefined;
  bytes.copyWithin(16 - (length - gap), gap, length);
  bytes.fill(0, gap, 16 - (length - gap));
  return bytes;
}

/** The value of a hexadecimal digit; -1: there is none. */
function hexDigit(text: string, at: number): number {
  const code = text.charCodeAt(at);
  if (code >= ZERO && code <= NINE) return code - ZERO;
  const lower = code | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1;
}

function isV4Mapped(bytes: Uint8Array): boolean {
  if (bytes[10] !== 0xff || bytes[11] !== 0xff) return false;
  for (let i = 0; i < 10; i++) if (bytes[i] !== 0) return false;
  return true;
}

function formatIpv6(bytes: Uint8Array): string {
  const group = (index: number): number => (bytes[index * 2]! << 8) | bytes[index * 2 + 1]!;
  // RFC 5952 section 4.2: the longest run of two or more zero groups becomes "::", the first one on a tie.
  let bestStart = -1;
  let bestLength = 1;
  for (let i = 0; i < 8; ) {
    let length = 0;
    while (i + length < 8 && group(i + length) === 0) length++;
    if (length > bestLength) {
      bestStart = i;
      bestLength = length;
    }
    i += length + 1;
  }
  let text = '';
  for (let i = 0; i < 8; i++) {
    if (i === bestStart) {
      text += '::';
      i += bestLength - 1;
    } else {
      text += i === 0 || text.endsWith(':') ? group(i).toString(16) : `:${group(i).toString(16)}`;
    }
  }
  return text;
}

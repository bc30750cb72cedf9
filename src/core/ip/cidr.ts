import { NodeplaneError } from '../errors.ts';
import { addressBits, formatIp, type IpAddress, type IpFamily, ipEquals, tryParseIp } from './ip.ts';

/** An address block. `address` has no host bits set when made by `parseCidr(text)`. */
export interface Cidr {
  readonly address: IpAddress;
  readonly prefixLength: number;
}

/** Parses `address/prefix` and clears the host bits, as kube-proxy does. Throws ERR_ADDRESS_INVALID. */
export function parseCidr(text: string): Cidr {
  return networkOfCidr(parseAddressWithPrefix(text));
}

/** As `parseCidr`; undefined for anything else. An error, with its stack, would cost as much as a hundred addresses. */
export function tryParseCidr(text: string): Cidr | undefined {
  const cidr = tryParseAddressWithPrefix(text);
  return cidr && networkOfCidr(cidr);
}

/** Parses `address/prefix` and keeps the host bits, as an interface address is written. Throws ERR_ADDRESS_INVALID. */
export function parseAddressWithPrefix(text: string): Cidr {
  const cidr = tryParseAddressWithPrefix(text);
  if (!cidr) {
    throw new NodeplaneError('ERR_ADDRESS_INVALID', `Cannot read "${text}" as a CIDR: expected address/prefix-length`, {
      facts: { text },
    });
  }
  return cidr;
}

function tryParseAddressWithPrefix(text: string): Cidr | undefined {
  const slash = text.indexOf('/');
  const prefixLength = slash < 0 ? -1 : decimal(text, slash + 1);
  const address = prefixLength < 0 ? undefined : tryParseIp(text.slice(0, slash));
  return address && prefixLength <= addressBits(address.family) ? { address, prefixLength } : undefined;
}

/** The number that the rest of a text is, of one to three digits; -1: it is none. Without a text of its own, for thousands. */
function decimal(text: string, start: number): number {
  const digits = text.length - start;
  if (digits < 1 || digits > 3) return -1;
  let value = 0;
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x30 || code > 0x39) return -1;
    value = value * 10 + (code - 0x30);
  }
  return value;
}

function networkOfCidr(cidr: Cidr): Cidr {
  const { address, prefixLength } = cidr;
  const network = networkOf(address, prefixLength);
  return network === address ? cidr : { address: network, prefixLength };
}

/** The same address with the same prefix; bits beyond it count too. */
export function cidrEquals(a: Cidr, b: Cidr): boolean {
  return a.prefixLength === b.prefixLength && ipEquals(a.address, b.address);
}

/** `10.244.0.0/24`; bits beyond the prefix are written as they are. */
export function formatCidr(cidr: Cidr): string {
  return `${formatIp(cidr.address)}/${cidr.prefixLength}`;
}

/** The address with all bits after the prefix cleared: itself where they are. */
export function networkOf(ip: IpAddress, prefixLength: number): IpAddress {
  if (!hasHostBits(ip.bytes, prefixLength)) return ip;
  const bytes = Uint8Array.from(ip.bytes);
  for (let i = 0; i < bytes.length; i++) {
    const keep = Math.min(8, Math.max(0, prefixLength - i * 8));
    bytes[i] = bytes[i]! & (0xff << (8 - keep));
  }
  return { family: ip.family, bytes };
}

/** The bits of a prefix, in network byte order: 255.255.255.0 for 24 of IPv4. */
export function prefixMask(family: IpFamily, prefixLength: number): Uint8Array {
  return networkOf({ family, bytes: new Uint8Array(addressBits(family) / 8).fill(0xff) }, prefixLength).bytes;
}

/** The last address of a block; of IPv4 the one for broadcasts. Host bits of the block do not matter. */
export function lastOf({ address, prefixLength }: Cidr): IpAddress {
  const mask = prefixMask(address.family, prefixLength);
  return { family: address.family, bytes: address.bytes.map((byte, index) => byte | (~mask[index]! & 0xff)) };
}

function hasHostBits(bytes: Uint8Array, prefixLength: number): boolean {
  const whole = prefixLength >> 3;
  if (whole < bytes.length && (bytes[whole]! & (0xff >> (prefixLength & 7))) !== 0) return true;
  for (let i = whole + 1; i < bytes.length; i++) if (bytes[i] !== 0) return true;
  return false;
}

/** Whether `ip` lies in `cidr`; false when the families differ. */
export function cidrContains({ address, prefixLength }: Cidr, ip: IpAddress): boolean {
  if (address.family !== ip.family) return false;
  // Without copies: it is asked for each of thousands of nodes.
  for (let at = 0, left = prefixLength; left > 0; at++, left -= 8) {
    const mask = left >= 8 ? 0xff : 0xff << (8 - left);
    if (((address.bytes[at]! ^ ip.bytes[at]!) & mask) !== 0) return false;
  }
  return true;
}

/** Whether two blocks have an address in common; false when the families differ. */
export function cidrsOverlap(a: Cidr, b: Cidr): boolean {
  return cidrContains(a, b.address) || cidrContains(b, a.address);
}

/** Whether all of a block lies in another one, or is that one; false when the families differ. */
export function cidrCovers(outer: Cidr, inner: Cidr): boolean {
  return outer.prefixLength <= inner.prefixLength && cidrContains(outer, inner.address);
}

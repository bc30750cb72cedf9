import type { Cidr } from './cidr.ts';
import { addressBits, type IpAddress, type IpFamily, ipFromBytes } from './ip.ts';

// ip-num can do all this; loading it takes 10 ms of processor time in each call of the plugin, a sixth of the whole. The
// tests hold this file to it.

/** An inclusive span of addresses of one family, as numbers. */
export interface IpSpan {
  readonly family: IpFamily;
  readonly first: bigint;
  /** Not below `first`. */
  readonly last: bigint;
}

/** The numeric value of an address, most significant byte first. */
export function ipValue(ip: IpAddress): bigint {
  return BigInt(`0x${Buffer.from(ip.bytes).toString('hex')}`);
}

/** The address of a numeric value; the inverse of `ipValue`. The value must fit the family. */
export function ipFromValue(family: IpFamily, value: bigint): IpAddress {
  const digits = family === 'IPv4' ? 8 : 32;
  return ipFromBytes(Buffer.from(value.toString(16).padStart(digits, '0'), 'hex'));
}

/** All addresses of a block, the network address (and for IPv4 the broadcast address) included. */
export function spanOfCidr({ address, prefixLength }: Cidr): IpSpan {
  const hostBits = BigInt(addressBits(address.family) - prefixLength);
  const first = (ipValue(address) >> hostBits) << hostBits;
  return { family: address.family, first, last: first + (1n << hostBits) - 1n };
}

/** The addresses from `first` to `last`, both included; they must be of one family, and `first` not above `last`. */
export function spanBetween(first: IpAddress, last: IpAddress): IpSpan {
  return { family: first.family, first: ipValue(first), last: ipValue(last) };
}

/** Whether an address lies in a span; false when the families differ. */
export function spanContains(span: IpSpan, ip: IpAddress): boolean {
  return span.family === ip.family && isWithin(span, ipValue(ip));
}

/** Whether a number lies in a span; the family is the caller's business. */
export function isWithin({ first, last }: IpSpan, value: bigint): boolean {
  return first <= value && value <= last;
}

/** Whether two spans have an address in common. */
export function spansOverlap(a: IpSpan, b: IpSpan): boolean {
  return a.family === b.family && a.first <= b.last && b.first <= a.last;
}

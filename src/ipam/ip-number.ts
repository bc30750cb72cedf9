import { IPv4, IPv4CidrRange, IPv4Prefix, IPv6, IPv6CidrRange, IPv6Prefix, RangedSet } from 'ip-num';
import { type Cidr, type IpAddress, type IpFamily, ipFromBytes } from '../core/index.ts';

/** An address as ip-num's number type: a BigInt of 32 or 128 bits with its family. */
export type IpNumber = IPv4 | IPv6;

/** An inclusive span of addresses of one family. */
export type IpSpan = RangedSet<IpNumber>;

/** The numeric value of an address, most significant byte first. */
export function ipValue(ip: IpAddress): bigint {
  return BigInt(`0x${Buffer.from(ip.bytes).toString('hex')}`);
}

/** The address of a numeric value; the inverse of `ipValue`. The value must fit the family. */
export function ipFromValue(family: IpFamily, value: bigint): IpAddress {
  const digits = family === 'IPv4' ? 8 : 32;
  return ipFromBytes(Buffer.from(value.toString(16).padStart(digits, '0'), 'hex'));
}

export function toIpNumber(ip: IpAddress): IpNumber {
  return ip.family === 'IPv4' ? IPv4.fromNumber(ipValue(ip)) : IPv6.fromBigInt(ipValue(ip));
}

/** All addresses of a block, the network address (and for IPv4 the broadcast address) included. */
export function spanOfCidr({ address, prefixLength }: Cidr): IpSpan {
  const block =
    address.family === 'IPv4'
      ? new IPv4CidrRange(IPv4.fromNumber(ipValue(address)), IPv4Prefix.fromNumber(BigInt(prefixLength)))
      : new IPv6CidrRange(IPv6.fromBigInt(ipValue(address)), IPv6Prefix.fromNumber(BigInt(prefixLength)));
  return new RangedSet<IpNumber>(block.getFirst(), block.getLast());
}

/** The addresses from `first` to `last`, both included; `first` must not be above `last`. */
export function spanBetween(first: IpNumber, last: IpNumber): IpSpan {
  return new RangedSet<IpNumber>(first, last);
}

export function spanContains(span: IpSpan, ip: IpNumber): boolean {
  return span.contains(new RangedSet<IpNumber>(ip, ip));
}

export function familyOf(span: IpSpan): IpFamily {
  return span.getFirst() instanceof IPv4 ? 'IPv4' : 'IPv6';
}

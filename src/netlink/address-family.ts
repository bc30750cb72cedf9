import { addressBits, type IpAddress, type IpFamily } from '../core/index.ts';
import { decodeError } from './decode-error.ts';
import { AF_INET, AF_INET6 } from './uapi/rtnetlink.ts';

/** The kernel's number of an IP family. */
export function familyNumber(family: IpFamily): number {
  return family === 'IPv4' ? AF_INET : AF_INET6;
}

/** The IP family of a kernel number; undefined for the others (AF_BRIDGE, AF_MPLS, ...). */
export function ipFamilyOf(number: number): IpFamily | undefined {
  return number === AF_INET ? 'IPv4' : number === AF_INET6 ? 'IPv6' : undefined;
}

/**
 * An address of `family` made of an attribute's value (copied).
 *
 * @param name the attribute, for the error
 * @throws ERR_NETLINK_DECODE when it has not 4 or 16 bytes, whichever the family needs
 */
export function decodeIp(family: IpFamily, value: Uint8Array, name: string): IpAddress {
  const size = addressBits(family) / 8;
  if (value.length !== size) throw decodeError(name, `it has ${value.length} bytes, expected ${size} for ${family}`);
  return { family, bytes: Uint8Array.from(value) };
}

/** A prefix length within its family. Throws ERR_NETLINK_DECODE. */
export function checkPrefixLength(family: IpFamily, prefixLength: number, name: string): number {
  const bits = addressBits(family);
  if (prefixLength > bits) throw decodeError(name, `${prefixLength} is more than the ${bits} bits of ${family}`);
  return prefixLength;
}

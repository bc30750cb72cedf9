import { ByteWriter, type IpAddress, readBe16, readU16 } from '../../core/index.ts';
import { decodeIp, familyNumber, ipFamilyOf } from '../address-family.ts';
import { decodeError } from '../decode-error.ts';

/** Where a peer is reached. */
export interface Endpoint {
  readonly ip: IpAddress;
  /** UDP. */
  readonly port: number;
}

/**
 * An endpoint as a socket address of <linux/in.h> or <linux/in6.h>:
 * `struct sockaddr_in { u16 family; be16 port; be32 addr; u8 zero[8]; }`, or
 * `struct sockaddr_in6 { u16 family; be16 port; be32 flowinfo; u8 addr[16]; u32 scope_id; }`.
 */
export function encodeEndpoint({ ip, port }: Endpoint): Uint8Array {
  const isIpv4 = ip.family === 'IPv4';
  const writer = new ByteWriter(28);
  writer.u16(familyNumber(ip.family));
  writer.be16(port);
  if (!isIpv4) writer.zeros(4);
  writer.bytes(ip.bytes);
  writer.zeros(isIpv4 ? 8 : 4);
  return writer.written();
}

/** Decodes a WGPEER_A_ENDPOINT. Throws ERR_NETLINK_DECODE. */
export function decodeEndpoint(value: Uint8Array): Endpoint {
  if (value.length < 16) throw decodeError('WGPEER_A_ENDPOINT', `it has ${value.length} bytes, expected 16 or 28`);
  const number = readU16(value, 0);
  const family = ipFamilyOf(number);
  if (!family) throw decodeError('WGPEER_A_ENDPOINT', `family ${number} is neither IPv4 nor IPv6`);
  const bytes = family === 'IPv4' ? value.subarray(4, 8) : value.subarray(8, 24);
  return { ip: decodeIp(family, bytes, 'WGPEER_A_ENDPOINT'), port: readBe16(value, 2) };
}

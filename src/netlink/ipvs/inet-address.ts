import { addressBits, type IpAddress, type IpFamily } from '../../core/index.ts';
import { decodeError } from '../decode-error.ts';

/** sizeof(union nf_inet_addr) of <linux/netfilter.h>. */
const SIZE = 16;

/** An address as union nf_inet_addr: 16 bytes in network order, those an IPv4 address does not need zero. */
export function encodeInetAddress(address: IpAddress): Uint8Array {
  const bytes = new Uint8Array(SIZE);
  bytes.set(address.bytes);
  return bytes;
}

/** The address in a union nf_inet_addr (copied). Throws ERR_NETLINK_DECODE naming the attribute when it is cut short. */
export function decodeInetAddress(family: IpFamily, value: Uint8Array, name: string): IpAddress {
  const size = addressBits(family) / 8;
  if (value.length < size) throw decodeError(name, `it has ${value.length} bytes, ${family} needs ${size}`);
  return { family, bytes: Uint8Array.from(value.subarray(0, size)) };
}

import {
  formatIp,
  IP_PROTOCOLS,
  type IpAddress,
  type IpProtocol,
  ipFromBytes,
  protocolText,
  readBe16,
  readU32,
} from '../../../core/index.ts';
import { type DatatypeName, datatype } from '../../../netlink/nftables/index.ts';
import type { Endpoint } from '../../index.ts';

// Keys and values of set elements: fields one after the other, each padded to 4 bytes, packet fields in network order.

/** The same few for all. */
const PROTOCOL_FIELDS: Readonly<Record<IpProtocol, Uint8Array>> = {
  TCP: Uint8Array.of(IP_PROTOCOLS.TCP, 0, 0, 0),
  UDP: Uint8Array.of(IP_PROTOCOLS.UDP, 0, 0, 0),
  SCTP: Uint8Array.of(IP_PROTOCOLS.SCTP, 0, 0, 0),
};

/** `ip daddr . meta l4proto . th dport` */
export function vipKey(ip: IpAddress, protocol: IpProtocol, port: number): Buffer {
  const { bytes } = ip;
  const key = Buffer.allocUnsafe(bytes.length + 8);
  key.set(bytes);
  writePort(key, bytes.length, protocol, port);
  return key;
}

/** `meta l4proto` */
export function protocolField(protocol: IpProtocol): Uint8Array {
  return PROTOCOL_FIELDS[protocol];
}

/** `meta l4proto . th dport` */
export function portKey(protocol: IpProtocol, port: number): Buffer {
  const key = Buffer.allocUnsafe(8);
  writePort(key, 0, protocol, port);
  return key;
}

/** `PREFIX . INDEX`: the key of an endpoint in slot `index`, which is in host byte order as `numgen` makes it. */
export function indexedKey(prefix: Uint8Array, index: number): Uint8Array {
  const { length } = prefix;
  // Not a Buffer, and copied by hand: for so few bytes both cost more.
  const key = new Uint8Array(length + 4);
  for (let i = 0; i < length; i++) key[i] = prefix[i]!;
  key[length] = index;
  key[length + 1] = index >>> 8;
  key[length + 2] = index >>> 16;
  key[length + 3] = index >>> 24;
  return key;
}

/** `ADDRESS . PORT`: where a packet is sent. */
export function endpointData({ ip: { bytes }, port }: Pick<Endpoint, 'ip' | 'port'>): Uint8Array {
  const { length } = bytes;
  const data = new Uint8Array(length + 4);
  for (let i = 0; i < length; i++) data[i] = bytes[i]!;
  data[length] = port >>> 8;
  data[length + 1] = port;
  return data;
}

/** `VIP . SOURCE`, the first and the last key of a range of sources. */
export function sourceRangeKeys(vip: Uint8Array, first: Uint8Array, last: Uint8Array): { key: Buffer; keyEnd: Buffer } {
  return { key: Buffer.concat([vip, first]), keyEnd: Buffer.concat([vip, last]) };
}

/** The bytes as text, to look things up by; not for reading. */
export function keyText(key: Uint8Array): string {
  return Buffer.isBuffer(key) ? key.toString('latin1') : String.fromCharCode(...key);
}

/** A key or value of this type as `nft` prints it, for messages. */
export function describeKey(key: Uint8Array, type: readonly DatatypeName[]): string {
  const fields: string[] = [];
  let at = 0;
  for (const name of type) {
    const { length } = datatype(name);
    fields.push(describeField(name, key.subarray(at, at + length)));
    at += (length + 3) & ~3;
  }
  return fields.join(' . ');
}

function describeField(type: DatatypeName, bytes: Uint8Array): string {
  switch (type) {
    case 'ipv4_addr':
    case 'ipv6_addr':
      return formatIp(ipFromBytes(bytes));
    case 'inet_proto':
      return protocolText(bytes[0]!);
    case 'inet_service':
      return String(readBe16(bytes, 0));
    case 'integer':
      return String(readU32(bytes, 0));
    default:
      return Buffer.from(bytes).toString('hex');
  }
}

function writePort(key: Buffer, at: number, protocol: IpProtocol, port: number): void {
  key.fill(0, at);
  key[at] = IP_PROTOCOLS[protocol];
  key.writeUInt16BE(port, at + 4);
}

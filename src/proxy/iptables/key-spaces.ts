import {
  addressBits,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  ipFromBytes,
  networkOf,
  type ProtocolWord,
} from '../../core/index.ts';
import type { Key, KeySpace, TreeKey } from '../rules/index.ts';
import { hash16 } from './names.ts';

// The keys of the dispatch trees: an address (4 or 16 bytes), then a byte of protocol, then two of port, in network order.
// A tree leaves out the parts its rules do not look at.

/** Two bits are looked at: the first tells TCP from the others. */
const PROTOCOL_CODES: Readonly<Record<ProtocolWord, number>> = { tcp: 0x00, udp: 0x80, sctp: 0xc0 };
const PROTOCOLS = Object.keys(PROTOCOL_CODES) as ProtocolWord[];

/** The key of a rule that looks at protocol and port alone. */
export function portKey(protocol: ProtocolWord, port: number): TreeKey {
  return { text: `${protocol} ${port}`, bits: new Uint8Array(portBytes(protocol, port)) };
}

/** The key of a rule that looks at address, protocol and port. */
export function addressPortKey(ip: IpAddress, protocol: ProtocolWord, port: number): TreeKey {
  return {
    text: `${formatIp(ip)} ${protocol} ${port}`,
    bits: new Uint8Array([...ip.bytes, ...portBytes(protocol, port)]),
  };
}

/**
 * Prefixes of addresses, and below a single address of protocol and port. IPv4 blocks are named as they are written,
 * `KUBE-SVC-10.96.16.0/20`; what does not fit into 28 characters is named by a hash of what it matches, in lower case,
 * because a Service's own chains have theirs in upper case.
 */
export function addressSpace(family: IpFamily, chainPrefix: string): KeySpace {
  const addressLength = addressBits(family);
  const blockOf = (key: Key, length: number) => {
    const prefixLength = Math.min(length, addressLength);
    const address = ipFromBytes(key.slice(0, addressLength / 8));
    return formatCidr({ address: networkOf(address, prefixLength), prefixLength });
  };
  const textOf = (key: Key, length: number) => {
    const block = blockOf(key, length);
    if (length <= addressLength) return block;
    return `${block} ${portMatch(portPrefix(key.slice(addressLength / 8), length - addressLength))}`;
  };
  return {
    match: (key, length) => `-d ${textOf(key, length)}`,
    chainName(key, length) {
      const readable = family === 'IPv4' && length <= addressLength;
      const text = textOf(key, length);
      return chainPrefix + (readable ? text : hash16(text).toLowerCase());
    },
  };
}

/** Prefixes of protocol and port, named `KUBE-EXT-tcp-30000-30063`. */
export function portSpace(chainPrefix: string): KeySpace {
  return {
    match: (key, length) => portMatch(portPrefix(key, length)),
    chainName(key, length) {
      const { protocol, low, high } = portPrefix(key, length);
      return `${chainPrefix}${protocol}-${low}-${high}`;
    },
  };
}

function portBytes(protocol: ProtocolWord, port: number): [number, number, number] {
  return [PROTOCOL_CODES[protocol], port >> 8, port & 255];
}

/** Ports of one protocol, or of all but TCP. */
interface PortPrefix {
  readonly protocol: ProtocolWord | 'not-tcp';
  readonly low: number;
  readonly high: number;
}

/** @param length bits that are given, the protocol's byte included */
function portPrefix(key: Key, length: number): PortPrefix {
  const name = PROTOCOLS.find((each) => PROTOCOL_CODES[each] === key[0])!;
  const protocol = length === 1 && name !== 'tcp' ? 'not-tcp' : name;
  const free = 16 - Math.max(0, length - 8);
  const low = (((key[1]! << 8) | key[2]!) >> free) << free;
  return { protocol, low, high: low + (1 << free) - 1 };
}

function portMatch({ protocol, low, high }: PortPrefix): string {
  if (protocol === 'not-tcp') return '! -p tcp';
  const allPorts = low === 0 && high === 0xffff;
  return allPorts ? `-p ${protocol}` : `-p ${protocol} -m ${protocol} --dport ${low}:${high}`;
}

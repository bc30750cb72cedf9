import { formatIp, formatMac, ipFromBytes, readBe16, readBe32, readU32 } from '../../../core/index.ts';
import { type DatatypeName, typeLength } from '../object/datatypes.ts';

// Values of registers, keys and set data, as `nft` prints them.

/** What a value is: a datatype of sets, or one that only rules compare. */
export type ValueType =
  | DatatypeName
  /** Bits of `ct state`, `ct status`. */
  | 'ct_state'
  | 'ct_status'
  /** RTN_*, of `fib type`. */
  | 'fib_type'
  /** 0 or 1, of `fib ... oif` with `present`. */
  | 'existence'
  /** NFPROTO_* */
  | 'nfproto'
  /** An integer in network byte order. */
  | 'network_integer';

const PROTOCOLS: Readonly<Record<number, string>> = {
  1: 'icmp',
  6: 'tcp',
  17: 'udp',
  33: 'dccp',
  58: 'ipv6-icmp',
  132: 'sctp',
  136: 'udplite',
};
const NFPROTOS: Readonly<Record<number, string>> = { 2: 'ipv4', 10: 'ipv6' };
/** RTN_* of <linux/rtnetlink.h>, from 0 on. */
const FIB_TYPES = [
  'unspec',
  'unicast',
  'local',
  'broadcast',
  'anycast',
  'multicast',
  'blackhole',
  'unreachable',
  'prohibit',
];
/** Bits with their names, in the order in which `nft` lists them (ct_state_tbl, ct_status_tbl of its src/ct.c). */
const CT_BITS: Readonly<Record<'ct_state' | 'ct_status', readonly (readonly [bit: number, name: string])[]>> = {
  ct_state: [
    [1, 'invalid'],
    [8, 'new'],
    [2, 'established'],
    [4, 'related'],
    [64, 'untracked'],
  ],
  ct_status: [
    [1, 'expected'],
    [2, 'seen-reply'],
    [4, 'assured'],
    [8, 'confirmed'],
    [16, 'snat'],
    [32, 'dnat'],
    [512, 'dying'],
  ],
};

/** One value as `nft` prints it. Of a length that its type does not have: hexadecimal. */
export function valueText(type: ValueType, bytes: Uint8Array): string {
  switch (type) {
    case 'ipv4_addr':
    case 'ipv6_addr':
      return bytes.length === (type === 'ipv4_addr' ? 4 : 16) ? addressText(bytes) : hexText(bytes);
    case 'ether_addr':
      return formatMac(bytes);
    case 'inet_proto':
      return PROTOCOLS[bytes[0] ?? 0] ?? String(bytes[0]);
    case 'nfproto':
      return NFPROTOS[bytes[0] ?? 0] ?? String(bytes[0]);
    case 'inet_service':
      return bytes.length === 2 ? String(readBe16(bytes, 0)) : hexText(bytes);
    case 'ifname':
      return interfaceText(bytes);
    case 'unknown':
      return hexText(bytes);
    default:
      return bytes.length === 4 ? wordText(type, bytes) : integerText(type, bytes);
  }
}

/** As the C library prints it (inet_ntop), which writes the last 4 bytes of `::` as an IPv4 address. */
function addressText(bytes: Uint8Array): string {
  const embedsIpv4 = bytes.length === 16 && bytes.subarray(0, 12).every((byte) => byte === 0);
  if (embedsIpv4 && (bytes[12] !== 0 || bytes[13] !== 0)) return `::${formatIp(ipFromBytes(bytes.subarray(12)))}`;
  return formatIp(ipFromBytes(bytes));
}

/** A value of 4 bytes. */
function wordText(
  type: Exclude<ValueType, DatatypeName> | 'integer' | 'mark' | 'iface_index',
  bytes: Uint8Array,
): string {
  if (type === 'network_integer') return String(readBe32(bytes, 0));
  const value = readU32(bytes, 0);
  switch (type) {
    case 'mark':
      return `0x${value.toString(16).padStart(8, '0')}`;
    case 'ct_state':
    case 'ct_status':
      return bitNames(type, value) || `0x${value.toString(16).padStart(8, '0')}`;
    case 'fib_type':
      return FIB_TYPES[value] ?? String(value);
    case 'existence':
      return value === 0 ? 'missing' : 'exists';
    default:
      return String(value);
  }
}

function bitNames(type: 'ct_state' | 'ct_status', value: number): string {
  return CT_BITS[type]
    .filter(([bit]) => (value & bit) !== 0)
    .map(([, name]) => name)
    .join(',');
}

function integerText(type: ValueType, bytes: Uint8Array): string {
  const ordered = type === 'network_integer' ? bytes : bytes.toReversed();
  return String(ordered.reduce((sum, byte) => sum * 256n + BigInt(byte), 0n));
}

/** Shorter than an interface name is: compared as far as that goes. */
function interfaceText(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  const name = Buffer.from(bytes.subarray(0, end < 0 ? bytes.length : end)).toString('utf8');
  return end < 0 && bytes.length < typeLength(['ifname']) ? `"${name}*"` : `"${name}"`;
}

/** Bytes of no known type. */
export function hexText(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

/**
 * A key or value of a set: its fields with dots between them, those of a range with both ends or as a block.
 *
 * @param end of the last key of a range; undefined for a single key
 */
export function concatenationText(type: readonly DatatypeName[], bytes: Uint8Array, end?: Uint8Array): string {
  if (type.length === 0 || type.includes('unknown') || bytes.length < typeLength(type)) {
    return hexText(bytes) + (end ? `-${hexText(end)}` : '');
  }
  const fields: string[] = [];
  let at = 0;
  for (const name of type) {
    const length = typeLength([name]);
    const first = bytes.subarray(at, at + length);
    fields.push(end ? rangeText(name, first, end.subarray(at, at + length)) : valueText(name, first));
    at += (length + 3) & ~3;
  }
  return fields.join(' . ');
}

/** `192.168.0.7`, `198.18.0.0/15`, `80-90`: a range of one field, both ends included. */
export function rangeText(type: ValueType, first: Uint8Array, last: Uint8Array): string {
  if (Buffer.compare(first, last) === 0) return valueText(type, first);
  const mask = first.map((byte, index) => 0xff & ~(byte ^ last[index]!));
  const length = prefixLength(mask);
  const isBlock = length !== undefined && first.every((byte, index) => (byte & ~mask[index]!) === 0);
  const isAddress = type === 'ipv4_addr' || type === 'ipv6_addr';
  if (isAddress && isBlock) return `${valueText(type, first)}/${length}`;
  return `${valueText(type, first)}-${valueText(type, last)}`;
}

/** How many leading ones a mask has; undefined when there are ones behind its first zero. */
export function prefixLength(mask: Uint8Array): number | undefined {
  const bits = [...mask].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const length = bits.indexOf('0');
  if (length < 0) return bits.length;
  return bits.includes('1', length) ? undefined : length;
}

/** `1h`, `1m30s`, `500ms`: as `nft` prints times. */
export function timeText(ms: number): string {
  let rest = ms;
  let text = '';
  for (const [unit, size] of TIME_UNITS) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text || '0s';
}

const TIME_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

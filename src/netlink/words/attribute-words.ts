import { formatIp, ipFromBytes } from '../../core/index.ts';
import type { Attribute } from '../attribute.ts';
import type { AttributeSet } from '../attribute-set.ts';

/** How to read attributes that are declared as plain bytes, by name: a nest of another set. */
export type NestedBytes = Readonly<Record<string, (value: Uint8Array) => string>>;

/** Attributes whose bytes are nobody's business. */
const SECRETS = /_(PRIVATE|PRESHARED)_KEY$/;

/** Attributes whose bytes are an address. */
const ADDRESSES =
  /_(IPV[46]|IP_V[46]_(SRC|DST)|ATTR_ADDR|GATEWAY|PREFSRC|VXLAN_(GROUP|LOCAL)6?)$|^(RTA|NDA)_DST$|^IFA_(ADDRESS|LOCAL|BROADCAST)$/;
/** Those of them that are a union nf_inet_addr, in which an IPv4 address has four bytes of sixteen. */
const UNIONS = /_ATTR_ADDR$/;

/**
 * Attributes by name, a nest in braces: `IPSET_ATTR_SETNAME "web" IPSET_ATTR_DATA { … }`. Those that the set does not declare by
 * their number.
 *
 * @param offset where they begin in `bytes`
 * @throws ERR_NETLINK_DECODE
 */
export function attributesText(
  // biome-ignore lint/suspicious/noExplicitAny: attributes of any declaration
  set: AttributeSet<any>,
  bytes: Uint8Array,
  offset = 0,
  nested: NestedBytes = {},
): string {
  return decodedText(set.decode(bytes, offset), nested);
}

function decodedText(decoded: object, nested: NestedBytes): string {
  const { unknown, ...known } = decoded as Record<string, unknown> & { unknown: readonly Attribute[] };
  const texts = Object.entries(known).map(([name, value]) => `${name} ${valueText(name, value, nested)}`);
  for (const { type, value } of unknown) texts.push(`attribute ${type} ${hex(value)}`);
  return texts.join(' ');
}

function valueText(name: string, value: unknown, nested: NestedBytes): string {
  if (typeof value === 'string') return JSON.stringify(value);
  if (!(value instanceof Uint8Array)) {
    return typeof value === 'object' && value !== null ? braces(decodedText(value, nested)) : String(value);
  }
  if (SECRETS.test(name)) return `(${value.length} bytes)`;
  const read = nested[name];
  if (read) return braces(read(value));
  return ADDRESSES.test(name) ? addressText(value, UNIONS.test(name)) : hex(value);
}

function addressText(value: Uint8Array, isUnion: boolean): string {
  if (value.length !== 4 && value.length !== 16) return hex(value);
  const isIpv4 = isUnion && value.length === 16 && value.subarray(4).every((byte) => byte === 0);
  return formatIp(ipFromBytes(isIpv4 ? value.subarray(0, 4) : value));
}

function braces(text: string): string {
  return text === '' ? '{}' : `{ ${text} }`;
}

function hex(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes).toString('hex')}`;
}

/** Names by their numbers, of a table of constants. */
export function byNumber(numbers: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(numbers).map(([name, number]) => [number, name]));
}

import type { CtExpression, MetaKey, PayloadBase } from '../expression/expression.ts';
import type { FibExpression, RtExpression } from '../expression/routing-expression.ts';
import type { NftFamily } from '../object/model.ts';
import type { Operand } from './registers.ts';
import type { ValueType } from './value-text.ts';

// What expressions load, by the names that `nft` has for it.

/** What is known of the packet from earlier comparisons, which decides how its fields are called. */
export interface PacketContext {
  /** The protocol of the network header. */
  network: 'ip' | 'ip6' | undefined;
  /** The protocol of the transport header: `tcp`. */
  transport: string | undefined;
}

/** What is known at the beginning of a rule. */
export function packetContext(family: NftFamily): PacketContext {
  return { network: family === 'ip' || family === 'ip6' ? family : undefined, transport: undefined };
}

interface PayloadField {
  readonly base: PayloadBase;
  readonly offset: number;
  readonly length: number;
}

const BASE_LETTERS: Readonly<Record<PayloadBase, string>> = { link: 'll', network: 'nh', transport: 'th' };

/** A field of a header, `@nh,96,32` (bits) for one without a name; and whether the name says which protocol the header has. */
export function payloadText(
  field: PayloadField,
  { network, transport }: PacketContext,
): Operand & { readonly implies?: 'network' | 'transport' } {
  const { base, offset, length } = field;
  const words = Math.ceil(length / 4);
  if (base === 'link' && length === 6 && (offset === 0 || offset === 6)) {
    return { text: `ether ${offset === 0 ? 'daddr' : 'saddr'}`, type: 'ether_addr', words };
  }
  if (base === 'transport' && length === 2 && (offset === 0 || offset === 2)) {
    const text = `${transport ?? 'th'} ${offset === 0 ? 'sport' : 'dport'}`;
    return { text, type: 'inet_service', words, ...(transport && { implies: 'transport' }) };
  }
  const size = network === 'ip' ? 4 : 16;
  const first = network === 'ip' ? 12 : 8;
  if (base === 'network' && network && length === size && (offset === first || offset === first + size)) {
    const type = network === 'ip' ? 'ipv4_addr' : 'ipv6_addr';
    return { text: `${network} ${offset === first ? 'saddr' : 'daddr'}`, type, words, implies: 'network' };
  }
  return { text: `@${BASE_LETTERS[base]},${offset * 8},${length * 8}`, type: 'unknown', words };
}

/** Keys that `nft` takes without the word `meta` before them. */
const UNQUALIFIED: ReadonlySet<MetaKey> = new Set([
  'iif',
  'iifname',
  'iiftype',
  'iifgroup',
  'oif',
  'oifname',
  'oiftype',
  'oifgroup',
]);

const META_TYPES: Partial<Record<MetaKey, ValueType>> = {
  mark: 'mark',
  iifname: 'ifname',
  oifname: 'ifname',
  nfproto: 'nfproto',
  l4proto: 'inet_proto',
  protocol: 'network_integer',
  ipsec: 'existence',
};

/** `meta mark`, `iifname` */
export function metaText(key: MetaKey): Operand {
  const isPlain = UNQUALIFIED.has(key);
  const type = META_TYPES[key] ?? 'integer';
  return { text: isPlain ? key : `meta ${key}`, type, words: type === 'ifname' ? 4 : 1 };
}

const CT_TYPES: Partial<Record<CtExpression['key'], ValueType>> = {
  state: 'ct_state',
  status: 'ct_status',
  mark: 'mark',
  protocol: 'inet_proto',
  l3proto: 'nfproto',
  'proto-src': 'inet_service',
  'proto-dst': 'inet_service',
  'saddr-ip': 'ipv4_addr',
  'daddr-ip': 'ipv4_addr',
  'saddr-ip6': 'ipv6_addr',
  'daddr-ip6': 'ipv6_addr',
};

/** `ct state`, `ct original ip daddr` */
export function ctText({ key, direction }: Pick<CtExpression, 'key' | 'direction'>): Operand {
  const [, which, network] = /^([sd]addr)-(ip6?)$/.exec(key) ?? [];
  const type = CT_TYPES[key] ?? 'integer';
  const name = which ? `${network} ${which}` : key;
  return { text: `ct ${direction ? `${direction} ` : ''}${name}`, type, words: type === 'ipv6_addr' ? 4 : 1 };
}

/** `fib daddr type`, `fib saddr . iif oif` */
export function fibText({ result, flags, present }: FibExpression): Operand {
  const type = present ? 'existence' : result === 'type' ? 'fib_type' : result === 'oifname' ? 'ifname' : 'integer';
  return { text: `fib ${flags.join(' . ')} ${result}`, type, words: type === 'ifname' ? 4 : 1 };
}

/** `rt ip nexthop`, `rt ip6 nexthop` */
export function rtText(key: RtExpression['key']): Operand {
  if (key === 'ipsec') return { text: 'rt ipsec', type: 'existence', words: 1 };
  return key === 'nexthop-ip'
    ? { text: 'rt ip nexthop', type: 'ipv4_addr', words: 1 }
    : { text: 'rt ip6 nexthop', type: 'ipv6_addr', words: 4 };
}

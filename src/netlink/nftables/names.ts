// The kernel's numbers for what the model calls by name.

import {
  NF_NAT_RANGE_NETMAP,
  NF_NAT_RANGE_PERSISTENT,
  NF_NAT_RANGE_PROTO_RANDOM,
  NF_NAT_RANGE_PROTO_RANDOM_FULLY,
  NFPROTO_ARP,
  NFPROTO_BRIDGE,
  NFPROTO_INET,
  NFPROTO_IPV4,
  NFPROTO_IPV6,
  NFPROTO_NETDEV,
  NFT_SET_ANONYMOUS,
  NFT_SET_CONSTANT,
  NFT_SET_EVAL,
  NFT_SET_INTERVAL,
  NFT_SET_TIMEOUT,
} from '../uapi/nf-tables.ts';
import type {
  CmpExpression,
  CtKey,
  DynsetExpression,
  LimitExpression,
  MetaKey,
  PayloadBase,
} from './expression/expression.ts';
import type { NatFlag } from './expression/nat-expression.ts';
import type { FibExpression, FibFlag, RtExpression } from './expression/routing-expression.ts';
import type { NftFamily, NftHook, SetFlag } from './object/model.ts';

/** Names with their numbers, looked up in both directions. */
export interface Names<N extends string> {
  readonly numbers: Readonly<Record<N, number>>;
  /** Undefined for a number this program does not know. */
  name(number: number): N | undefined;
}

/** Names of single bits. */
export interface FlagNames<N extends string> {
  /** The bits of all `names`, put together. */
  bits(names: readonly N[] | undefined): number;
  /** The names of the bits that are set, in the order of the table; unknown bits are left out. */
  names(bits: number): N[];
}

function names<N extends string>(numbers: Readonly<Record<N, number>>): Names<N> {
  const byNumber = new Map(Object.entries(numbers).map(([name, number]) => [number as number, name as N]));
  return { numbers, name: (number) => byNumber.get(number) };
}

function flagNames<N extends string>(numbers: Readonly<Record<N, number>>): FlagNames<N> {
  const table = Object.entries(numbers) as [N, number][];
  return {
    bits: (given = []) => given.reduce((sum, name) => sum | numbers[name], 0),
    names: (bits) => table.filter(([, bit]) => (bits & bit) !== 0).map(([name]) => name),
  };
}

/** Families by NFPROTO_*. */
export const FAMILIES = names<NftFamily>({
  inet: NFPROTO_INET,
  ip: NFPROTO_IPV4,
  ip6: NFPROTO_IPV6,
  bridge: NFPROTO_BRIDGE,
  netdev: NFPROTO_NETDEV,
  arp: NFPROTO_ARP,
});

/** NF_INET_* of enum nf_inet_hooks. */
export const HOOKS = names<NftHook>({ prerouting: 0, input: 1, forward: 2, output: 3, postrouting: 4 });

/** enum nft_payload_bases. */
export const PAYLOAD_BASES = names<PayloadBase>({ link: 0, network: 1, transport: 2 });

/** enum nft_meta_keys. */
export const META_KEYS = names<MetaKey>({
  length: 0,
  protocol: 1,
  priority: 2,
  mark: 3,
  iif: 4,
  oif: 5,
  iifname: 6,
  oifname: 7,
  iiftype: 8,
  oiftype: 9,
  skuid: 10,
  skgid: 11,
  nftrace: 12,
  rtclassid: 13,
  nfproto: 15,
  l4proto: 16,
  pkttype: 19,
  iifgroup: 21,
  oifgroup: 22,
  cgroup: 23,
  ipsec: 25,
});

/** enum nft_ct_keys. */
export const CT_KEYS = names<CtKey>({
  state: 0,
  direction: 1,
  status: 2,
  mark: 3,
  secmark: 4,
  expiration: 5,
  helper: 6,
  l3proto: 7,
  protocol: 10,
  'proto-src': 11,
  'proto-dst': 12,
  labels: 13,
  packets: 14,
  bytes: 15,
  avgpkt: 16,
  zone: 17,
  'saddr-ip': 19,
  'daddr-ip': 20,
  'saddr-ip6': 21,
  'daddr-ip6': 22,
  id: 23,
});

/** enum nft_cmp_ops. */
export const CMP_OPS = names<CmpExpression['op']>({ '==': 0, '!=': 1, '<': 2, '<=': 3, '>': 4, '>=': 5 });

/** enum nft_range_ops. */
export const RANGE_OPS = names<'==' | '!='>({ '==': 0, '!=': 1 });

/** enum nft_bitwise_ops; its 0 is mask and xor. */
export const SHIFTS = names<'left' | 'right'>({ left: 1, right: 2 });

/** enum nft_byteorder_ops. */
export const BYTEORDER_OPS = names<'ntoh' | 'hton'>({ ntoh: 0, hton: 1 });

/** enum nft_nat_types. */
export const NAT_TYPES = names<'snat' | 'dnat'>({ snat: 0, dnat: 1 });

/** NF_NAT_RANGE_* of <linux/netfilter/nf_nat.h>. */
export const NAT_FLAGS = flagNames<NatFlag>({
  random: NF_NAT_RANGE_PROTO_RANDOM,
  'random-fully': NF_NAT_RANGE_PROTO_RANDOM_FULLY,
  persistent: NF_NAT_RANGE_PERSISTENT,
  netmap: NF_NAT_RANGE_NETMAP,
});

/** enum nft_fib_result. */
export const FIB_RESULTS = names<FibExpression['result']>({ oif: 1, oifname: 2, type: 3 });

/** enum nft_fib_flags. */
export const FIB_FLAGS = flagNames<FibFlag>({ saddr: 1, daddr: 2, mark: 4, iif: 8, oif: 16 });

/** enum nft_rt_keys. */
export const RT_KEYS = names<RtExpression['key']>({ 'nexthop-ip': 1, 'nexthop-ip6': 2, ipsec: 4 });

/** enum ip_conntrack_dir. */
export const DIRECTIONS = names<'original' | 'reply'>({ original: 0, reply: 1 });

/** enum nft_ng_types. */
export const NUMGEN_MODES = names<'inc' | 'random'>({ inc: 0, random: 1 });

/** enum nft_dynset_ops. */
export const DYNSET_OPERATIONS = names<DynsetExpression['operation']>({ add: 0, update: 1, delete: 2 });

/** enum nft_reject_types. */
export const REJECT_TYPES = names<'icmp' | 'tcp-reset' | 'icmpx'>({ icmp: 0, 'tcp-reset': 1, icmpx: 2 });

/** Seconds, as NFTA_LIMIT_UNIT has them. */
export const LIMIT_UNITS = names<LimitExpression['unit']>({
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86400,
  week: 604800,
});

/** enum nft_limit_type. */
export const LIMIT_TYPES = names<LimitExpression['of']>({ packets: 0, bytes: 1 });

/** Verdicts of both kinds: those that name a chain, and the others. */
export const VERDICTS = names<'accept' | 'drop' | 'continue' | 'break' | 'return' | 'jump' | 'goto'>({
  drop: 0,
  accept: 1,
  continue: -1,
  break: -2,
  jump: -3,
  goto: -4,
  return: -5,
});

/** enum nft_set_flags. */
export const SET_FLAGS = flagNames<SetFlag>({
  anonymous: NFT_SET_ANONYMOUS,
  constant: NFT_SET_CONSTANT,
  interval: NFT_SET_INTERVAL,
  timeout: NFT_SET_TIMEOUT,
  dynamic: NFT_SET_EVAL,
});

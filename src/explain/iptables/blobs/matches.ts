import { formatChance } from '../../../proxy/rules/index.ts';
import type { Extension, Option } from '../parse-rule.ts';
import {
  type Blob,
  type BlobContext,
  type BlobForm,
  decodeBlob,
  type EncodedExtension,
  hexText,
  iptablesOption,
  optionIf,
  rangeText,
} from './blob.ts';
import { CONNTRACK } from './conntrack.ts';
import { SET_MATCH } from './sets.ts';

/** xt_tcp and xt_udp begin so: `u16 spts[2], dpts[2]`, <linux/netfilter/xt_tcpudp.h>. */
function ports(blob: Blob, invertedAt: number): Option[] {
  return [
    portRange(blob, '--sport', 0, blob.has(invertedAt, 1)),
    portRange(blob, '--dport', 4, blob.has(invertedAt, 2)),
  ].flat();
}

function portRange(blob: Blob, name: string, at: number, inverted: boolean): Option[] {
  const [first, last] = [blob.u16(at), blob.u16(at + 2)];
  return optionIf(first !== 0 || last !== 0xffff || inverted, name, [rangeText(first, last)], inverted);
}

const TCP_FLAGS = ['FIN', 'SYN', 'RST', 'PSH', 'ACK', 'URG', 'ECE', 'CWR'];
const TCP_OPTION_AT = 8;
const TCP_INVERTED_AT = 11;

function flagNames(flags: number): string {
  return TCP_FLAGS.filter((_, bit) => (flags & (1 << bit)) !== 0).join(',') || 'NONE';
}

/** xt_tcp: behind the ports `u8 option, flg_mask, flg_cmp, invflags`. */
function tcp(blob: Blob): Option[] {
  const [wanted, mask, flags] = [blob.u8(TCP_OPTION_AT), blob.u8(9), blob.u8(10)];
  const [withoutFlags, withoutOption] = [blob.has(TCP_INVERTED_AT, 4), blob.has(TCP_INVERTED_AT, 8)];
  return [
    ...ports(blob, TCP_INVERTED_AT),
    ...optionIf(wanted !== 0 || withoutOption, '--tcp-option', [wanted], withoutOption),
    ...optionIf(mask !== 0 || withoutFlags, '--tcp-flags', [flagNames(mask), flagNames(flags)], withoutFlags),
  ];
}

/** xt_sctp_info: `u16 dpts[2], spts[2]`, chunks, `u32 flags` of what is looked at, `u32 invflags`, <linux/netfilter/xt_sctp.h>. */
function sctp(blob: Blob): Option[] | undefined {
  const [flags, inverted] = [blob.u32(284), blob.u32(288)];
  if ((flags & ~3) !== 0) return undefined;
  return [
    ...((flags & 1) !== 0 ? portRange(blob, '--sport', 4, (inverted & 1) !== 0) : []),
    ...((flags & 2) !== 0 ? portRange(blob, '--dport', 0, (inverted & 2) !== 0) : []),
  ];
}

const MULTIPORT_ENDS = ['--sports', '--dports', '--ports'];

/**
 * xt_multiport_v1: `u8 flags, count; u16 ports[15]; u8 pflags[15], invert`; where a pflag is set, a range begins.
 * <linux/netfilter/xt_multiport.h>
 */
function multiport(blob: Blob): Option[] | undefined {
  const name = MULTIPORT_ENDS[blob.u8(0)];
  const list: string[] = [];
  for (let index = 0; index < blob.u8(1); index++) {
    const [first, isRange] = [blob.u16(2 + 2 * index), blob.u8(32 + index) !== 0];
    list.push(isRange ? `${first}:${blob.u16(2 + 2 * ++index)}` : String(first));
  }
  return name === undefined ? undefined : [iptablesOption(name, [list.join(',')], blob.u8(47) !== 0)];
}

/** xt_mark_mtinfo1 and xt_connmark_mtinfo1: `u32 mark, mask; u8 invert`, <linux/netfilter/xt_mark.h>. */
function mark(blob: Blob): Option[] {
  const [wanted, mask] = [hexText(blob.u32(0)), blob.u32(4)];
  return [iptablesOption('--mark', [mask === 0xffff_ffff ? wanted : `${wanted}/${hexText(mask)}`], blob.u8(8) !== 0)];
}

/** XT_ADDRTYPE_*: 1 << RTN_* of <linux/rtnetlink.h>. */
const ADDRESS_TYPES = [
  'UNSPEC',
  'UNICAST',
  'LOCAL',
  'BROADCAST',
  'ANYCAST',
  'MULTICAST',
  'BLACKHOLE',
  'UNREACHABLE',
  'PROHIBIT',
  'THROW',
  'NAT',
  'XRESOLVE',
];

/** xt_addrtype_info_v1: `u16 source, dest; u32 flags`, <linux/netfilter/xt_addrtype.h>. */
function addrtype(blob: Blob): Option[] {
  const type = (name: string, types: number, inverted: boolean) => {
    const names = ADDRESS_TYPES.filter((_, bit) => (types & (1 << bit)) !== 0);
    return optionIf(types !== 0, name, [names.join(',')], inverted);
  };
  return [
    ...type('--src-type', blob.u16(0), blob.has(4, 1)),
    ...type('--dst-type', blob.u16(2), blob.has(4, 2)),
    ...optionIf(blob.has(4, 4), '--limit-iface-in'),
    ...optionIf(blob.has(4, 8), '--limit-iface-out'),
  ];
}

/** xt_statistic_info: `u16 mode, flags; u32 probability`, or `u32 every, packet`, one less than said; <linux/netfilter/xt_statistic.h>. */
function statistic(blob: Blob): Option[] | undefined {
  const [mode, inverted, number] = [blob.u16(0), blob.has(2, 1), blob.u32(4)];
  if (mode === 0) {
    return [iptablesOption('--mode', ['random']), iptablesOption('--probability', [formatChance(number)], inverted)];
  }
  if (mode !== 1) return undefined;
  return [
    iptablesOption('--mode', ['nth']),
    iptablesOption('--every', [number + 1], inverted),
    iptablesOption('--packet', [blob.u32(8)]),
  ];
}

/**
 * xt_physdev_info: `char physindev[16], in_mask[16], physoutdev[16], out_mask[16]; u8 invert, bitmask`,
 * <linux/netfilter/xt_physdev.h>.
 */
function physdev(blob: Blob): Option[] {
  const given = (bit: number, name: string, values: readonly string[] = []) =>
    optionIf(blob.has(65, bit), name, values, blob.has(64, bit));
  return [
    ...given(8, '--physdev-is-in'),
    ...given(1, '--physdev-in', [blob.interfacePattern(0, 16)]),
    ...given(16, '--physdev-is-out'),
    ...given(2, '--physdev-out', [blob.interfacePattern(32, 48)]),
    ...given(4, '--physdev-is-bridged'),
  ];
}

/**
 * xt_recent_mtinfo: `u32 seconds, hit_count; u8 check_set, invert; char name[200]; u8 side`, in revision 1 with a mask;
 * <linux/netfilter/xt_recent.h>.
 */
function recent(blob: Blob, mask: readonly Option[]): Option[] {
  const [seconds, hits, inverted] = [blob.u32(0), blob.u32(4), blob.u8(9) !== 0];
  return [
    ...optionIf(blob.has(8, 2), '--set', [], inverted),
    ...optionIf(blob.has(8, 1), '--rcheck', [], inverted),
    ...optionIf(blob.has(8, 4), '--update', [], inverted),
    ...optionIf(blob.has(8, 8), '--remove', [], inverted),
    ...optionIf(seconds !== 0, '--seconds', [seconds]),
    ...optionIf(blob.has(8, 32), '--reap'),
    ...optionIf(hits !== 0, '--hitcount', [hits]),
    ...optionIf(blob.has(8, 16), '--rttl'),
    iptablesOption('--name', [blob.text(10, 200)]),
    ...mask,
    iptablesOption(blob.u8(210) === 0 ? '--rsource' : '--rdest'),
  ];
}

/** xt_iprange_mtinfo: `nf_inet_addr src_min, src_max, dst_min, dst_max; u8 flags`, <linux/netfilter/xt_iprange.h>. */
function iprange(blob: Blob): Option[] {
  const range = (at: number) => [`${blob.address(at)}-${blob.address(at + 16)}`];
  return [
    ...optionIf(blob.has(64, 1), '--src-range', range(0), blob.has(64, 16)),
    ...optionIf(blob.has(64, 2), '--dst-range', range(32), blob.has(64, 32)),
  ];
}

/** xt_rpfilter_info: `u8 flags`, <linux/netfilter/xt_rpfilter.h>. */
function rpfilter(blob: Blob): Option[] {
  return ['--loose', '--validmark', '--accept-local', '--invert'].flatMap((name, bit) =>
    optionIf(blob.has(0, 1 << bit), name),
  );
}

/** xt_socket_mtinfo1 to 3: `u8 flags`, <linux/netfilter/xt_socket.h>. */
function socket(blob: Blob): Option[] {
  return ['--transparent', '--nowildcard', '--restore-skmark'].flatMap((name, bit) =>
    optionIf(blob.has(0, 1 << bit), name),
  );
}

/** Tenths of milliseconds, XT_LIMIT_SCALE a second. */
const LIMIT_UNITS = [
  ['sec', 10_000],
  ['min', 600_000],
  ['hour', 36_000_000],
  ['day', 864_000_000],
] as const;
const DEFAULT_BURST = 5;

/** xt_rateinfo: `u32 avg, burst`, avg the time between two packets; <linux/netfilter/xt_limit.h>. */
function limit(blob: Blob): Option[] | undefined {
  const [period, burst] = [blob.u32(0), blob.u32(4)];
  const exact = LIMIT_UNITS.find(([, unit]) => unit >= period && Math.floor(unit / period) >= unit % period);
  const [name, unit] = exact ?? LIMIT_UNITS[3];
  if (period === 0) return undefined;
  return [
    iptablesOption('--limit', [`${Math.floor(unit / period)}/${name}`]),
    ...optionIf(burst !== DEFAULT_BURST, '--limit-burst', [burst]),
  ];
}

/** ipt_icmp and ip6t_icmp: `u8 type, code[2], invflags`, <linux/netfilter_ipv4/ip_tables.h>. */
const icmp =
  (name: string) =>
  (blob: Blob): Option[] => {
    const [type, first, last] = [blob.u8(0), blob.u8(1), blob.u8(2)];
    const isAnyCode = first === 0 && last === 0xff;
    return [iptablesOption(name, [type === 0xff ? 'any' : isAnyCode ? type : `${type}/${first}`], blob.has(3, 1))];
  };

/** ip6t_hl_info: `u8 mode, hop_limit`, <linux/netfilter_ipv6/ip6t_hl.h>. */
function hops(blob: Blob): Option[] | undefined {
  const name = ['--hl-eq', '--hl-eq', '--hl-lt', '--hl-gt'][blob.u8(0)];
  return name === undefined ? undefined : [iptablesOption(name, [blob.u8(1)], blob.u8(0) === 1)];
}

/** xt_tcpmss_match_info: `u16 mss_min, mss_max; u8 invert`, <linux/netfilter/xt_tcpmss.h>. */
function tcpmss(blob: Blob): Option[] {
  return [iptablesOption('--mss', [rangeText(blob.u16(0), blob.u16(2))], blob.u8(4) !== 0)];
}

/** Elements of 76 bytes: `addr[4][16]; be32 spi; u32 reqid; u8 proto, mode; u8 match, invert`. */
const POLICY_ELEMENT = { match: 74, invert: 75 };
const POLICY = { in: 1, none: 4, strict: 8 };

/** xt_policy_info: four elements, `u16 flags, len`, <linux/netfilter/xt_policy.h>. Of what packets are wrapped in nothing is read. */
function policy(blob: Blob): Option[] | undefined {
  const [flags, count] = [blob.u16(304), blob.u16(306)];
  const isNone = (flags & POLICY.none) !== 0;
  if (!isNone && (count !== 1 || blob.u8(POLICY_ELEMENT.match) !== 0 || blob.u8(POLICY_ELEMENT.invert) !== 0))
    return undefined;
  return [
    iptablesOption('--dir', [(flags & POLICY.in) !== 0 ? 'in' : 'out']),
    iptablesOption('--pol', [isNone ? 'none' : 'ipsec']),
    ...optionIf((flags & POLICY.strict) !== 0, '--strict'),
  ];
}

const PACKET_TYPES = ['unicast', 'broadcast', 'multicast'];

/** xt_pkttype_info: `int pkttype, invert`, the former one of PACKET_*; <linux/netfilter/xt_pkttype.h>. */
function pkttype(blob: Blob): Option[] | undefined {
  const name = PACKET_TYPES[blob.u32(0)];
  return name === undefined ? undefined : [iptablesOption('--pkt-type', [name], blob.u32(4) !== 0)];
}

/** The structs of matches, by the names they have in the kernel. */
const MATCHES: Readonly<Record<string, readonly BlobForm[]>> = {
  comment: [{ revisions: [0], size: 256, decode: (blob) => [iptablesOption('--comment', [blob.text(0, 256)])] }],
  tcp: [{ revisions: [0], size: 12, decode: tcp }],
  udp: [{ revisions: [0], size: 9, decode: (blob) => ports(blob, 8) }],
  sctp: [{ revisions: [0], size: 292, decode: sctp }],
  multiport: [{ revisions: [1], size: 48, decode: multiport }],
  mark: [{ revisions: [1], size: 9, decode: mark }],
  connmark: [{ revisions: [1], size: 9, decode: mark }],
  conntrack: CONNTRACK,
  addrtype: [{ revisions: [1], size: 8, decode: addrtype }],
  statistic: [{ revisions: [0], size: 12, decode: statistic }],
  set: SET_MATCH,
  physdev: [{ revisions: [0], size: 66, decode: physdev }],
  recent: [
    { revisions: [0], size: 211, decode: (blob) => recent(blob, []) },
    { revisions: [1], size: 228, decode: (blob) => recent(blob, [iptablesOption('--mask', [blob.address(212)])]) },
  ],
  iprange: [{ revisions: [1], size: 65, decode: iprange }],
  nfacct: [{ revisions: [0, 1], size: 32, decode: (blob) => [iptablesOption('--nfacct-name', [blob.text(0, 32)])] }],
  socket: [{ revisions: [1, 2, 3], size: 1, decode: socket }],
  rpfilter: [{ revisions: [0], size: 1, decode: rpfilter }],
  limit: [{ revisions: [0], size: 8, decode: limit }],
  icmp: [{ revisions: [0], size: 4, decode: icmp('--icmp-type') }],
  icmp6: [{ revisions: [0], size: 4, decode: icmp('--icmpv6-type') }],
  hl: [{ revisions: [0], family: 'IPv6', size: 2, decode: hops }],
  policy: [{ revisions: [0], size: 308, decode: policy }],
  pkttype: [{ revisions: [0], size: 8, decode: pkttype }],
  tcpmss: [{ revisions: [0], size: 5, decode: tcpmss }],
};

/**
 * A match of x_tables, as the save programs of iptables print it.
 *
 * @returns undefined for an extension, a revision or an option that is not known here
 */
export function decodeMatch(match: EncodedExtension, context: BlobContext): Extension | undefined {
  const { name } = match;
  const options = Object.hasOwn(MATCHES, name) ? decodeBlob(MATCHES[name]!, match, context) : undefined;
  return options && { name, options };
}

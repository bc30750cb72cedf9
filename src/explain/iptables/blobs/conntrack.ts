import type { Option } from '../parse-rule.ts';
import { type Blob, type BlobForm, iptablesOption, optionIf, rangeText } from './blob.ts';

/*
 * struct xt_conntrack_mtinfo1 {
 *   nf_inet_addr origsrc_addr, origsrc_mask, origdst_…, replsrc_…, repldst_…; u32 expires_min, expires_max; u16 l4proto;
 *   be16 origsrc_port, origdst_port, replsrc_port, repldst_port; u16 match_flags, invert_flags; u8 state_mask, status_mask; }
 *
 * In revision 2 the two masks are u16; in revision 3 also the ports are in host byte order, and where each range ends comes last.
 * <linux/netfilter/xt_conntrack.h>
 */
const EXPIRES_AT = 128;
const PROTOCOL_AT = 136;
const PORTS_AT = 138;
const MATCHED_AT = 146;
const INVERTED_AT = 148;
const STATE_AT = 150;
const STATUS_AT = 152;
const LAST_PORTS_AT = 154;

/** XT_CONNTRACK_*: what is looked at. */
const FLAG = {
  state: 1,
  protocol: 2,
  originalSource: 4,
  status: 0x40,
  expires: 0x80,
  originalPort: 0x100,
  direction: 0x1000,
};

/** XT_CONNTRACK_STATE_*. */
const STATES = [
  ['INVALID', 1],
  ['NEW', 8],
  ['RELATED', 4],
  ['ESTABLISHED', 2],
  ['UNTRACKED', 0x100],
  ['SNAT', 0x40],
  ['DNAT', 0x80],
] as const;

/** IPS_*, <linux/netfilter/nf_conntrack_common.h>. */
const STATUSES = [
  ['EXPECTED', 1],
  ['SEEN_REPLY', 2],
  ['ASSURED', 4],
  ['CONFIRMED', 8],
] as const;

const ENDS = ['origsrc', 'origdst', 'replsrc', 'repldst'];

/** Reads what differs between the revisions. */
interface Revision {
  masks(blob: Blob): readonly [state: number, status: number];
  ports(blob: Blob, index: number): string;
}

const wideMasks = (blob: Blob) => [blob.u16(STATE_AT), blob.u16(STATUS_AT)] as const;
const onePort = (blob: Blob, index: number) => String(blob.be16(PORTS_AT + 2 * index));
const REVISIONS: readonly Revision[] = [
  { masks: (blob) => [blob.u8(STATE_AT), blob.u8(STATE_AT + 1)], ports: onePort },
  { masks: wideMasks, ports: onePort },
  {
    masks: wideMasks,
    ports: (blob, index) => rangeText(blob.u16(PORTS_AT + 2 * index), blob.u16(LAST_PORTS_AT + 2 * index)),
  },
];

function decode(blob: Blob, revision: Revision): readonly Option[] {
  const [matched, inverted] = [blob.u16(MATCHED_AT), blob.u16(INVERTED_AT)];
  const given = (flag: number, name: string, value: () => string | number) =>
    (matched & flag) === 0 ? [] : [iptablesOption(name, [value()], (inverted & flag) !== 0)];
  const [states, statuses] = revision.masks(blob);
  return [
    ...given(FLAG.state, '--ctstate', () => names(STATES, states)),
    ...given(FLAG.protocol, '--ctproto', () => blob.u16(PROTOCOL_AT)),
    ...ENDS.flatMap((end, index) => given(FLAG.originalSource << index, `--ct${end}`, () => network(blob, 32 * index))),
    ...ENDS.flatMap((end, index) =>
      given(FLAG.originalPort << index, `--ct${end}port`, () => revision.ports(blob, index)),
    ),
    ...given(FLAG.status, '--ctstatus', () => names(STATUSES, statuses) || 'NONE'),
    ...given(FLAG.expires, '--ctexpire', () => rangeText(blob.u32(EXPIRES_AT), blob.u32(EXPIRES_AT + 4))),
    // It has no word for `!`: the answer's direction is the first one's, turned round.
    ...optionIf((matched & FLAG.direction) !== 0, '--ctdir', [
      (inverted & FLAG.direction) === 0 ? 'ORIGINAL' : 'REPLY',
    ]),
  ];
}

/** Its length goes without saying where all of an address counts. */
function network(blob: Blob, at: number): string {
  return blob.network(at, at + 16).replace(blob.context.family === 'IPv4' ? /\/32$/ : /\/128$/, '');
}

function names(table: readonly (readonly [name: string, bit: number])[], bits: number): string {
  return table
    .filter(([, bit]) => (bits & bit) !== 0)
    .map(([name]) => name)
    .join(',');
}

/** Match `conntrack`; `-m state` is the same one, by another name. */
export const CONNTRACK: readonly BlobForm[] = [152, 156, 164].map((size, index) => ({
  revisions: [index + 1],
  size: index === 2 ? 162 : size,
  decode: (blob) => decode(blob, REVISIONS[index]!),
}));

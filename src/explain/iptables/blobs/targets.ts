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
import { NAT_TARGETS } from './nat.ts';
import { SET_TARGET } from './sets.ts';

/** xt_mark_tginfo2: `u32 mark, mask`, <linux/netfilter/xt_mark.h>. */
function mark(blob: Blob): Option[] {
  return [iptablesOption('--set-xmark', [`${hexText(blob.u32(0))}/${hexText(blob.u32(4))}`])];
}

/**
 * xt_connmark_tginfo1: `u32 ctmark, ctmask, nfmask; u8 mode`; in revision 2 `u8 shift_dir, shift_bits, mode`.
 * <linux/netfilter/xt_connmark.h>
 */
function connmark(blob: Blob, modeAt: number): Option[] | undefined {
  const [value, mask, ofPacket] = [0, 4, 8].map((at) => hexText(blob.u32(at)));
  const mode = blob.u8(modeAt);
  if (mode === 0) return [iptablesOption('--set-xmark', [`${value}/${mask}`])];
  const name = ['', '--save-mark', '--restore-mark'][mode];
  return name === undefined
    ? undefined
    : [iptablesOption(name), iptablesOption('--nfmask', [ofPacket!]), iptablesOption('--ctmask', [mask!])];
}

/** enum ipt_reject_with and ip6t_reject_with, <linux/netfilter_ipv4/ipt_REJECT.h>, <linux/netfilter_ipv6/ip6t_REJECT.h>. */
const REJECT_WITH: Readonly<Record<BlobContext['family'], readonly (string | undefined)[]>> = {
  IPv4: [
    'icmp-net-unreachable',
    'icmp-host-unreachable',
    'icmp-proto-unreachable',
    'icmp-port-unreachable',
    undefined,
    'icmp-net-prohibited',
    'icmp-host-prohibited',
    'tcp-reset',
    'icmp-admin-prohibited',
  ],
  IPv6: [
    'icmp6-no-route',
    'icmp6-adm-prohibited',
    undefined,
    'icmp6-addr-unreachable',
    'icmp6-port-unreachable',
    undefined,
    'tcp-reset',
    'icmp6-policy-fail',
    'icmp6-reject-route',
  ],
};

function reject(blob: Blob): Option[] | undefined {
  const how = REJECT_WITH[blob.context.family][blob.u32(0)];
  return how === undefined ? undefined : [iptablesOption('--reject-with', [how])];
}

/** xt_ct_target_info: `u16 flags`, the first of which is XT_CT_NOTRACK, and then nothing else counts; <linux/netfilter/xt_CT.h>. */
function ct(blob: Blob): Option[] | undefined {
  return blob.has(0, 1) ? [iptablesOption('--notrack')] : undefined;
}

/**
 * ipt_TTL_info and ip6t_HL_info: `u8 mode, hops`, <linux/netfilter_ipv4/ipt_TTL.h>. Other modes than the first count
 * from what is not known.
 */
const hops =
  (name: string) =>
  (blob: Blob): Option[] | undefined =>
    blob.u8(0) === 0 ? [iptablesOption(name, [blob.u8(1)])] : undefined;

/**
 * xt_NFQ_info: `u16 queuenum`, from revision 1 on `u16 queues_total`, from 2 on what to do without a listener, in 3 among flags;
 * <linux/netfilter/xt_NFQUEUE.h>.
 */
function nfqueue(blob: Blob, hasTotal: boolean, hasFlags: boolean): Option[] {
  const [first, total, flags] = [blob.u16(0), hasTotal ? blob.u16(2) : 1, hasFlags ? blob.u16(4) : 0];
  return [
    total > 1
      ? iptablesOption('--queue-balance', [rangeText(first, first + total - 1)])
      : iptablesOption('--queue-num', [first]),
    ...optionIf((flags & 1) !== 0, '--queue-bypass'),
    ...optionIf((flags & 2) !== 0, '--queue-cpu-fanout'),
  ];
}

/** The structs of the targets whose options matter here: what others do depends on none of theirs, or is not known. */
const TARGETS: Readonly<Record<string, readonly BlobForm[]>> = {
  MARK: [{ revisions: [2], size: 8, decode: mark }],
  CONNMARK: [
    { revisions: [1], size: 13, decode: (blob) => connmark(blob, 12) },
    // Shifted marks are not told.
    { revisions: [2], size: 15, decode: (blob) => (blob.u8(13) === 0 ? connmark(blob, 14) : undefined) },
  ],
  REJECT: [{ revisions: [0], size: 4, decode: reject }],
  CT: [{ revisions: [0, 1, 2], size: 2, decode: ct }],
  NFQUEUE: [
    { revisions: [0], size: 2, decode: (blob) => nfqueue(blob, false, false) },
    { revisions: [1], size: 4, decode: (blob) => nfqueue(blob, true, false) },
    { revisions: [2, 3], size: 6, decode: (blob) => nfqueue(blob, true, true) },
  ],
  TTL: [{ revisions: [0], family: 'IPv4', size: 2, decode: hops('--ttl-set') }],
  HL: [{ revisions: [0], family: 'IPv6', size: 2, decode: hops('--hl-set') }],
  SET: SET_TARGET,
  ...NAT_TARGETS,
};

/**
 * A target of x_tables, as the save programs of iptables print it, but without options that do not matter here.
 *
 * @returns undefined for a revision or an option that is not known here
 */
export function decodeTarget(target: EncodedExtension, context: BlobContext): Extension | undefined {
  const { name } = target;
  const options = Object.hasOwn(TARGETS, name) ? decodeBlob(TARGETS[name]!, target, context) : [];
  return options && { name, options };
}

import { ByteWriter } from '../../core/index.ts';
import type { Attribute } from '../attribute.ts';
import { encodeBody, encodeNest } from '../attribute-set.ts';
import { decodeError } from '../decode-error.ts';
import type { NetlinkRequest } from '../message.ts';
import type { Netlink } from '../netlink.ts';
import { NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from '../uapi/netlink.ts';
import {
  INGRESS_HANDLE,
  TC_H_INGRESS,
  TC_H_ROOT,
  TC_LINKLAYER_ETHERNET,
  TCA,
  TCA_TBF,
  TICKS_PER_SECOND,
  tc_tbf_qopt,
  tcmsg,
} from '../uapi/pkt-sched.ts';
import { RTM_DELQDISC, RTM_GETQDISC, RTM_NEWQDISC } from '../uapi/rtnetlink.ts';
import { decodeLimits, type QueueLimits, readRate } from './tc-limits.ts';

const U32_MAX = 0xffff_ffff;
/** `1:`, as good as any: there is one qdisc at the root. */
const ROOT_HANDLE = 0x1_0000;

/** A token bucket filter: what leaves the device is held to a rate, after a burst at full speed. */
export interface TokenBucket {
  /** Bytes per second. */
  readonly rate: number;
  /** Size of the bucket in bytes, at most 2^32 - 1. The kernel drops frames that are larger. */
  readonly burst: number;
  /** Bytes that may wait, at most 2^32 - 1; what comes on top is dropped. */
  readonly limit: number;
}

/** A queueing discipline as the kernel describes it. */
export interface Qdisc {
  /** Index of the device. */
  readonly index: number;
  readonly handle: number;
  readonly parent: number;
  /** `tbf`, `ingress`, `noqueue`, ... */
  readonly kind: string;
  /** Present for kind `tbf`. `burst` was converted to a time and back, and may be a few bytes smaller than asked for. */
  readonly tokenBucket: TokenBucket | undefined;
  /** What it lets pass at all; of kind `tbf` see `tokenBucket`. */
  readonly limits: QueueLimits;
  /** Attributes we have no name for. */
  readonly unknown: readonly Attribute[];
}

/** Makes a token bucket filter the qdisc of everything the device `index` sends, in the place of the one before. */
export function setTokenBucket(index: number, bucket: TokenBucket): NetlinkRequest {
  const { rate, burst, limit } = bucket;
  const parms = new ByteWriter(tc_tbf_qopt.size);
  tc_tbf_qopt.encode(parms, {
    rate_linklayer: TC_LINKLAYER_ETHERNET,
    rate_rate: Math.min(rate, U32_MAX),
    limit,
    buffer: bufferTicks(bucket),
  });
  return {
    type: RTM_NEWQDISC,
    flags: NLM_F_CREATE | NLM_F_REPLACE,
    operation: 'RTM_NEWQDISC',
    object: `tbf of device ${index} (rate ${rate} bytes/s, burst ${burst} bytes, limit ${limit} bytes)`,
    payload: encodeBody(tcmsg, { tcm_ifindex: index, tcm_handle: ROOT_HANDLE, tcm_parent: TC_H_ROOT }, TCA, {
      TCA_KIND: 'tbf',
      TCA_OPTIONS: encodeNest(TCA_TBF, {
        TCA_TBF_PARMS: parms.written(),
        TCA_TBF_RATE64: rate > U32_MAX ? u64(rate) : undefined,
        TCA_TBF_BURST: burst,
      }),
    }),
  };
}

/** Gives the device `index` the qdisc that filters for what it receives hang on. EEXIST when it has one. */
export function newIngressQdisc(index: number): NetlinkRequest {
  return {
    type: RTM_NEWQDISC,
    flags: NLM_F_CREATE | NLM_F_EXCL,
    operation: 'RTM_NEWQDISC',
    object: `ingress qdisc of device ${index}`,
    payload: encodeBody(tcmsg, { tcm_ifindex: index, tcm_handle: INGRESS_HANDLE, tcm_parent: TC_H_INGRESS }, TCA, {
      TCA_KIND: 'ingress',
    }),
  };
}

/** Takes the ingress qdisc of the device `index` away, with the filters that hang on it. EINVAL or ENOENT when it has none. */
export function deleteIngressQdisc(index: number): NetlinkRequest {
  return {
    type: RTM_DELQDISC,
    flags: 0,
    operation: 'RTM_DELQDISC',
    object: `ingress qdisc of device ${index}`,
    payload: encodeBody(tcmsg, { tcm_ifindex: index, tcm_handle: INGRESS_HANDLE, tcm_parent: TC_H_INGRESS }, TCA, {
      TCA_KIND: 'ingress',
    }),
  };
}

/** The qdiscs of the device `index`, without those the kernel gives every device. Throws KernelError, ERR_NETLINK_DECODE. */
export function listQdiscs(netlink: Netlink, index: number): Qdisc[] {
  // The kernel always lists those of all devices.
  return netlink
    .dump(qdiscListing)
    .filter((payload) => tcmsg.decode(payload).tcm_ifindex === index)
    .map(decodeQdisc);
}

const qdiscListing: NetlinkRequest = {
  type: RTM_GETQDISC,
  flags: 0,
  operation: 'RTM_GETQDISC',
  object: 'all qdiscs',
  payload: encodeBody(tcmsg, {}, TCA, {}),
};

/** Decodes the payload of an RTM_NEWQDISC. Throws ERR_NETLINK_DECODE. */
export function decodeQdisc(payload: Uint8Array): Qdisc {
  const header = tcmsg.decode(payload);
  const { TCA_KIND: kind = '', TCA_OPTIONS: options, unknown } = TCA.decode(payload, tcmsg.size);
  return {
    index: header.tcm_ifindex,
    handle: header.tcm_handle,
    parent: header.tcm_parent,
    kind,
    tokenBucket: kind === 'tbf' && options ? decodeTokenBucket(options) : undefined,
    limits: decodeLimits(kind, options),
    unknown,
  };
}

function decodeTokenBucket(options: Uint8Array): TokenBucket {
  const { TCA_TBF_PARMS: parms, TCA_TBF_RATE64: rate64 } = TCA_TBF.decode(options);
  if (!parms) throw decodeError('TCA_TBF', 'it has no TCA_TBF_PARMS');
  const { rate_rate, limit, buffer } = tc_tbf_qopt.decode(parms);
  const rate = rate64 ? readRate('TCA_TBF_RATE64', rate64) : rate_rate;
  return { rate, burst: Math.round((buffer / TICKS_PER_SECOND) * rate), limit };
}

/** How long the bucket takes to fill; kernels before 3.14 knew its size by that alone. */
function bufferTicks({ rate, burst }: TokenBucket): number {
  return Math.min(Math.floor((burst / rate) * TICKS_PER_SECOND), U32_MAX);
}

function u64(value: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

// <linux/pkt_sched.h> and the head of traffic control messages from <linux/rtnetlink.h>: queueing disciplines.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/** Parent of a qdisc that takes everything a device sends. */
export const TC_H_ROOT = 0xffff_ffff;
/** Parent of the qdisc that sees everything a device receives. */
export const TC_H_INGRESS = 0xffff_fff1;
/** The handle the kernel gives that qdisc: `ffff:`. */
export const INGRESS_HANDLE = 0xffff_0000;
/** Parents of filters: TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS or TC_H_MIN_EGRESS). Qdisc `ingress` takes both for its own. */
export const CLSACT_INGRESS = 0xffff_fff2;
export const CLSACT_EGRESS = 0xffff_fff3;

/**
 * struct tcmsg {
 *   unsigned char tcm_family;
 *   unsigned char tcm__pad1;
 *   unsigned short tcm__pad2;
 *   int   tcm_ifindex;
 *   __u32 tcm_handle;   // major << 16 | minor
 *   __u32 tcm_parent;
 *   __u32 tcm_info;     // of a filter: priority << 16 | protocol in network order
 * };
 */
export const tcmsg = struct('tcmsg', 20, {
  tcm_family: ['u8', 0],
  tcm_ifindex: ['s32', 4],
  tcm_handle: ['u32', 8],
  tcm_parent: ['u32', 12],
  tcm_info: ['u32', 16],
});

/** What TCA_OPTIONS holds depends on TCA_KIND. */
export const TCA = attributeSet('TCA', {
  TCA_KIND: [1, 'string'],
  TCA_OPTIONS: [2, 'bytes'],
});

/**
 * struct tc_tbf_qopt {
 *   struct tc_ratespec {
 *     unsigned char  cell_log;
 *     __u8           linklayer;  // TC_LINKLAYER_*
 *     unsigned short overhead;
 *     short          cell_align;
 *     unsigned short mpu;
 *     __u32          rate;       // bytes per second
 *   } rate, peakrate;
 *   __u32 limit;                 // bytes that may wait
 *   __u32 buffer;                // how long the bucket takes to fill, in ticks of 64 ns
 *   __u32 mtu;
 * };
 */
export const tc_tbf_qopt = struct('tc_tbf_qopt', 36, {
  rate_linklayer: ['u8', 1],
  rate_rate: ['u32', 8],
  limit: ['u32', 24],
  buffer: ['u32', 28],
});

/** Of pfifo and bfifo, in TCA_OPTIONS itself: packets, or bytes. */
export const tc_fifo_qopt = struct('tc_fifo_qopt', 4, { limit: ['u32', 0] });

/** TCA_OPTIONS of a token bucket filter (`tbf`). */
export const TCA_TBF = attributeSet('TCA_TBF', {
  TCA_TBF_PARMS: [1, 'bytes'],
  /** u64: bytes per second, when they do not fit the 32 bits of the ratespec. */
  TCA_TBF_RATE64: [4, 'bytes'],
  /** Size of the bucket in bytes; counts more than `buffer`. */
  TCA_TBF_BURST: [6, 'u32'],
});

/** TCA_OPTIONS of kind `fq`. */
export const TCA_FQ = attributeSet('TCA_FQ', {
  TCA_FQ_PLIMIT: [1, 'u32'],
  TCA_FQ_FLOW_PLIMIT: [2, 'u32'],
  /** Bytes per second of each flow. */
  TCA_FQ_FLOW_MAX_RATE: [7, 'u32'],
});

/** TCA_OPTIONS of kind `codel`. */
export const TCA_CODEL = attributeSet('TCA_CODEL', { TCA_CODEL_LIMIT: [2, 'u32'] });

/** TCA_OPTIONS of kind `fq_codel`. */
export const TCA_FQ_CODEL = attributeSet('TCA_FQ_CODEL', {
  TCA_FQ_CODEL_LIMIT: [2, 'u32'],
  TCA_FQ_CODEL_MEMORY_LIMIT: [9, 'u32'],
});

/** TCA_OPTIONS of kind `cake`. */
export const TCA_CAKE = attributeSet('TCA_CAKE', {
  /** u64: bytes per second. */
  TCA_CAKE_BASE_RATE64: [2, 'bytes'],
  TCA_CAKE_MEMORY: [10, 'u32'],
});

/**
 * struct tc_htb_opt {
 *   struct tc_ratespec rate, ceil;   // see tc_tbf_qopt
 *   __u32 buffer, cbuffer, quantum, level, prio;
 * };
 */
export const tc_htb_opt = struct('tc_htb_opt', 44, { rate_rate: ['u32', 8], ceil_rate: ['u32', 20] });

/** TCA_OPTIONS of kind `htb`, and of its classes. */
export const TCA_HTB = attributeSet('TCA_HTB', {
  TCA_HTB_PARMS: [1, 'bytes'],
  TCA_HTB_DIRECT_QLEN: [5, 'u32'],
  /** u64: bytes per second, when they do not fit the 32 bits of the ratespec. */
  TCA_HTB_RATE64: [6, 'bytes'],
  TCA_HTB_CEIL64: [7, 'bytes'],
});

export const TC_LINKLAYER_ETHERNET = 1;
/** PSCHED_TICKS of user space: one is 64 ns. */
export const TICKS_PER_SECOND = 15_625_000;

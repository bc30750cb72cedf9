// <linux/pkt_cls.h> and <linux/tc_act/tc_mirred.h>: filters and what they do with a packet.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';
import { NLA_F_NESTED } from './netlink.ts';

/** <linux/if_ether.h>: any protocol. */
export const ETH_P_ALL = 3;

/**
 * struct tc_u32_sel {            // followed by `nkeys` struct tc_u32_key
 *   unsigned char flags;         // TC_U32_TERMINAL
 *   unsigned char offshift;
 *   unsigned char nkeys;
 *   __be16 offmask;
 *   __u16  off;
 *   short  offoff;
 *   short  hoff;
 *   __be32 hmask;
 * };
 * struct tc_u32_key {
 *   __be32 mask;
 *   __be32 val;
 *   int    off;
 *   int    offmask;
 * };
 */
export const tc_u32_sel_with_one_key = struct('tc_u32_sel', 32, {
  flags: ['u8', 0],
  nkeys: ['u8', 2],
  key_mask: ['be32', 16],
  key_val: ['be32', 20],
});

export const TC_U32_TERMINAL = 1;

/**
 * struct tc_mirred {
 *   __u32 index;    // tc_gen: number of the action, 0 for a new one
 *   __u32 capab;
 *   int   action;   // TC_ACT_*
 *   int   refcnt;
 *   int   bindcnt;
 *   int   eaction;  // TCA_EGRESS_REDIR, ...
 *   __u32 ifindex;  // of the device the packet goes to
 * };
 */
export const tc_mirred = struct('tc_mirred', 28, {
  action: ['s32', 8],
  eaction: ['s32', 20],
  ifindex: ['u32', 24],
});

export const TC_ACT_STOLEN = 4;
export const TCA_EGRESS_REDIR = 1;

/** TCA_ACT_OPTIONS of the action `mirred`. */
export const TCA_MIRRED = attributeSet('TCA_MIRRED', {
  TCA_MIRRED_PARMS: [2, 'bytes'],
});

/** TCA_ACT_OPTIONS depends on TCA_ACT_KIND. */
export const TCA_ACT = attributeSet('TCA_ACT', {
  TCA_ACT_KIND: [1, 'string'],
  TCA_ACT_OPTIONS: [2 | NLA_F_NESTED, 'bytes'],
});

/** The actions of a filter, by their order; only the first is of use to us. */
export const TCA_ACT_LIST = attributeSet('TCA_ACT_LIST', {
  FIRST: [1, TCA_ACT],
});

/** TCA_OPTIONS of a `u32` filter. */
export const TCA_U32 = attributeSet('TCA_U32', {
  TCA_U32_CLASSID: [1, 'u32'],
  TCA_U32_SEL: [5, 'bytes'],
  TCA_U32_ACT: [7, TCA_ACT_LIST],
});

// <linux/fib_rules.h>: policy rules.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/** <linux/rtnetlink.h> */
export const RTM_GETRULE = 34;

/**
 * struct fib_rule_hdr {
 *   __u8  family, dst_len, src_len, tos;
 *   __u8  table, res1, res2, action;
 *   __u32 flags;
 * };
 */
export const fib_rule_hdr = struct('fib_rule_hdr', 12, {
  family: ['u8', 0],
  src_len: ['u8', 2],
  tos: ['u8', 3],
  table: ['u8', 4],
  flags: ['u32', 8],
});

/** The rule is for what it does not ask for (`not`). */
export const FIB_RULE_INVERT = 0x2;

export const FRA = attributeSet('FRA', {
  FRA_SRC: [2, 'bytes'],
  FRA_PRIORITY: [6, 'u32'],
  /** struct fib_rule_uid_range { __u32 start, end; } */
  FRA_UID_RANGE: [20, 'bytes'],
  FRA_IP_PROTO: [22, 'u8'],
  /** struct fib_rule_port_range { __u16 start, end; } */
  FRA_SPORT_RANGE: [23, 'bytes'],
  FRA_DPORT_RANGE: [24, 'bytes'],
  /** Linux 6.13; before it `tos` of the header. */
  FRA_DSCP: [25, 'u8'],
});

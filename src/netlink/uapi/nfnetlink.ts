// <linux/netfilter/nfnetlink.h>: what all netfilter subsystems have in common.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/**
 * struct nfgenmsg {
 *   __u8   nfgen_family;  // AF_INET, AF_INET6; AF_UNSPEC for all
 *   __u8   version;       // NFNETLINK_V0
 *   __be16 res_id;        // resource ID
 * };
 */
export const nfgenmsg = struct('nfgenmsg', 4, {
  nfgen_family: ['u8', 0],
  version: ['u8', 1],
  res_id: ['be16', 2],
});

export const NFNETLINK_V0 = 0;

export const NFNL_SUBSYS_CTNETLINK = 1;

/** Begin and end of a transaction; nfgenmsg.res_id is the subsystem it is for. */
export const NFNL_MSG_BATCH_BEGIN = 16;
export const NFNL_MSG_BATCH_END = 17;

/** Of NFNL_MSG_BATCH_BEGIN: the generation the ruleset must have, else ERESTART. */
export const NFNL_BATCH_ATTRIBUTES = attributeSet('NFNL_BATCH', { NFNL_BATCH_GENID: [1, 'be32'] });

/** nlmsg_type of a message of a subsystem. */
export function nfnlType(subsystem: number, message: number): number {
  return (subsystem << 8) | message;
}

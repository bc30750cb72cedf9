// <linux/netfilter/nfnetlink.h>: what all netfilter subsystems have in common.
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

/** nlmsg_type of a message of a subsystem. */
export function nfnlType(subsystem: number, message: number): number {
  return (subsystem << 8) | message;
}

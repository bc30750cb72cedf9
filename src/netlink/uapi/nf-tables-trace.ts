// <linux/netfilter/nf_tables.h>: what the kernel tells of packets whose trace flag is set. Integers are in network byte order.
import { attributeSet } from '../attribute-set.ts';

/** Multicast group of traces (enum nfnetlink_groups). */
export const NFNLGRP_NFTRACE = 9;

export const NFT_MSG_TRACE = 17;

// enum nft_trace_types
export const NFT_TRACETYPE_POLICY = 1;
export const NFT_TRACETYPE_RETURN = 2;
export const NFT_TRACETYPE_RULE = 3;

export const NFTA_TRACE_VERDICT = attributeSet('NFTA_TRACE_VERDICT', {
  NFTA_VERDICT_CODE: [1, 'be32'],
  NFTA_VERDICT_CHAIN: [2, 'string'],
});

export const NFTA_TRACE = attributeSet('NFTA_TRACE', {
  NFTA_TRACE_TABLE: [1, 'string'],
  NFTA_TRACE_CHAIN: [2, 'string'],
  /** be64 */
  NFTA_TRACE_RULE_HANDLE: [3, 'bytes'],
  NFTA_TRACE_TYPE: [4, 'be32'],
  NFTA_TRACE_VERDICT: [5, NFTA_TRACE_VERDICT],
  NFTA_TRACE_ID: [6, 'be32'],
  NFTA_TRACE_LL_HEADER: [7, 'bytes'],
  NFTA_TRACE_NETWORK_HEADER: [8, 'bytes'],
  NFTA_TRACE_TRANSPORT_HEADER: [9, 'bytes'],
  NFTA_TRACE_IIF: [10, 'be32'],
  NFTA_TRACE_IIFTYPE: [11, 'be16'],
  NFTA_TRACE_OIF: [12, 'be32'],
  NFTA_TRACE_OIFTYPE: [13, 'be16'],
  NFTA_TRACE_MARK: [14, 'be32'],
  NFTA_TRACE_NFPROTO: [15, 'be32'],
  NFTA_TRACE_POLICY: [16, 'be32'],
  // Newer kernels: of the connection, once it is known. CT_ID is that of conntrack's own messages (CTA_ID).
  NFTA_TRACE_CT_ID: [18, 'be32'],
  NFTA_TRACE_CT_DIRECTION: [19, 'u8'],
});

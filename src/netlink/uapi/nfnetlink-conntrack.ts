// <linux/netfilter/nfnetlink_conntrack.h>: tracked flows. Values are in network byte order, except the filter flags.
import { attributeSet } from '../attribute-set.ts';
import { NLA_F_NESTED } from './netlink.ts';

export const IPCTNL_MSG_CT_NEW = 0;
export const IPCTNL_MSG_CT_GET = 1;
export const IPCTNL_MSG_CT_DELETE = 2;

// Multicast groups (enum nfnetlink_groups).
export const NFNLGRP_CONNTRACK_NEW = 1;
export const NFNLGRP_CONNTRACK_UPDATE = 2;
export const NFNLGRP_CONNTRACK_DESTROY = 3;

export const CTA_TUPLE_ORIG = 1;
export const CTA_TUPLE_REPLY = 2;
export const CTA_STATUS = 3;
export const CTA_PROTOINFO = 4;
export const CTA_COUNTERS_ORIG = 9;
export const CTA_COUNTERS_REPLY = 10;
export const CTA_ID = 12;
export const CTA_ZONE = 18;
export const CTA_FILTER = 25;
/** With CTA_STATUS in a request: which of its bits count (Linux 5.18; passed over before). */
export const CTA_STATUS_MASK = 26;

export const CTA_COUNTERS_PACKETS = 1;
export const CTA_COUNTERS_BYTES = 2;

// Bits of CTA_STATUS (<linux/netfilter/nf_conntrack_common.h>).
/** A packet came back. */
export const IPS_SEEN_REPLY = 1 << 1;
/** It is kept when room is made for others. */
export const IPS_ASSURED = 1 << 2;
/** Its destination was translated. */
export const IPS_DST_NAT = 1 << 5;

export const CTA_PROTOINFO_TCP = 1;
export const CTA_PROTOINFO_TCP_STATE = 1;
/** enum tcp_conntrack, <linux/netfilter/nf_conntrack_tcp.h>. */
export const TCP_CONNTRACK_TIME_WAIT = 7;

export const CTA_TUPLE_IP = 1;
export const CTA_TUPLE_PROTO = 2;

export const CTA_IP_V4_SRC = 1;
export const CTA_IP_V4_DST = 2;
export const CTA_IP_V6_SRC = 3;
export const CTA_IP_V6_DST = 4;

export const CTA_PROTO_NUM = 1;
export const CTA_PROTO_SRC_PORT = 2;
export const CTA_PROTO_DST_PORT = 3;

// What of a tuple a CTA_FILTER compares: bits of CTA_FILTER_ORIG_FLAGS (<net/netfilter/nf_conntrack.h>, Linux 5.8). The
// destination port needs the protocol number too.
export const CTA_FILTER_F_IP_DST = 1 << 1;
export const CTA_FILTER_F_PROTO_NUM = 1 << 3;
export const CTA_FILTER_F_PROTO_DST_PORT = 1 << 5;

const CTA_IP = attributeSet('CTA_IP', { CTA_IP_V4_DST: [CTA_IP_V4_DST, 'bytes'] });

const CTA_PROTO = attributeSet('CTA_PROTO', {
  CTA_PROTO_NUM: [CTA_PROTO_NUM, 'u8'],
  CTA_PROTO_DST_PORT: [CTA_PROTO_DST_PORT, 'be16'],
});

const CTA_TUPLE = attributeSet('CTA_TUPLE', {
  CTA_TUPLE_IP: [CTA_TUPLE_IP | NLA_F_NESTED, CTA_IP],
  CTA_TUPLE_PROTO: [CTA_TUPLE_PROTO | NLA_F_NESTED, CTA_PROTO],
});

const CTA_FILTER_FLAGS = attributeSet('CTA_FILTER', {
  CTA_FILTER_ORIG_FLAGS: [1, 'u32'],
  CTA_FILTER_REPLY_FLAGS: [2, 'u32'],
});

/** The body of a request to list flows. */
export const CTA_LISTING = attributeSet('CTA', {
  CTA_TUPLE_ORIG: [CTA_TUPLE_ORIG | NLA_F_NESTED, CTA_TUPLE],
  CTA_STATUS: [CTA_STATUS, 'be32'],
  CTA_STATUS_MASK: [CTA_STATUS_MASK, 'be32'],
  CTA_FILTER: [CTA_FILTER | NLA_F_NESTED, CTA_FILTER_FLAGS],
});

/** The body of a request to delete a flow: its tuple goes back as it came. */
export const CTA_DELETION = attributeSet('CTA', {
  CTA_TUPLE_ORIG: [CTA_TUPLE_ORIG | NLA_F_NESTED, 'bytes'],
  CTA_ID: [CTA_ID, 'be32'],
  CTA_ZONE: [CTA_ZONE, 'be16'],
});

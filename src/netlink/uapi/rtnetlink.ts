// <linux/rtnetlink.h>: message types, the structs they begin with, route attributes and their values.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

// Address families as rtnetlink uses them (<sys/socket.h>).
export const AF_UNSPEC = 0;
export const AF_INET = 2;
export const AF_BRIDGE = 7;
export const AF_INET6 = 10;

export const RTM_NEWLINK = 16;
export const RTM_DELLINK = 17;
export const RTM_GETLINK = 18;
export const RTM_SETLINK = 19;
export const RTM_NEWADDR = 20;
export const RTM_DELADDR = 21;
export const RTM_GETADDR = 22;
export const RTM_NEWROUTE = 24;
export const RTM_DELROUTE = 25;
export const RTM_GETROUTE = 26;
export const RTM_NEWNEIGH = 28;
export const RTM_DELNEIGH = 29;
export const RTM_GETNEIGH = 30;
export const RTM_NEWQDISC = 36;
export const RTM_DELQDISC = 37;
export const RTM_GETQDISC = 38;
export const RTM_GETTCLASS = 42;
export const RTM_NEWTFILTER = 44;
export const RTM_GETTFILTER = 46;
export const RTM_GETMDB = 86;
export const RTM_NEWNEXTHOP = 104;
export const RTM_DELNEXTHOP = 105;
export const RTM_GETNEXTHOP = 106;

// Multicast groups (enum rtnetlink_groups).
export const RTNLGRP_LINK = 1;
export const RTNLGRP_NEIGH = 3;
export const RTNLGRP_IPV4_IFADDR = 5;
export const RTNLGRP_IPV4_ROUTE = 7;
export const RTNLGRP_IPV6_IFADDR = 9;
export const RTNLGRP_IPV6_ROUTE = 11;
export const RTNLGRP_NEXTHOP = 32;

/**
 * struct ifinfomsg {
 *   unsigned char  ifi_family;
 *   unsigned char  __ifi_pad;
 *   unsigned short ifi_type;    // ARPHRD_*
 *   int            ifi_index;
 *   unsigned       ifi_flags;   // IFF_*
 *   unsigned       ifi_change;  // which of ifi_flags to set
 * };
 */
export const ifinfomsg = struct('ifinfomsg', 16, {
  ifi_family: ['u8', 0],
  ifi_type: ['u16', 2],
  ifi_index: ['s32', 4],
  ifi_flags: ['u32', 8],
  ifi_change: ['u32', 12],
});

/**
 * struct rtmsg {
 *   unsigned char rtm_family;
 *   unsigned char rtm_dst_len;   // prefix length
 *   unsigned char rtm_src_len;
 *   unsigned char rtm_tos;
 *   unsigned char rtm_table;     // RT_TABLE_*; RTA_TABLE counts when present
 *   unsigned char rtm_protocol;  // RTPROT_*
 *   unsigned char rtm_scope;     // RT_SCOPE_*
 *   unsigned char rtm_type;      // RTN_*
 *   unsigned      rtm_flags;     // RTNH_F_*, RTM_F_*
 * };
 */
export const rtmsg = struct('rtmsg', 12, {
  rtm_family: ['u8', 0],
  rtm_dst_len: ['u8', 1],
  rtm_src_len: ['u8', 2],
  rtm_tos: ['u8', 3],
  rtm_table: ['u8', 4],
  rtm_protocol: ['u8', 5],
  rtm_scope: ['u8', 6],
  rtm_type: ['u8', 7],
  rtm_flags: ['u32', 8],
});

export const RTAX = attributeSet('RTAX', {
  RTAX_MTU: [2, 'u32'],
  RTAX_ADVMSS: [8, 'u32'],
});

export const RTA = attributeSet('RTA', {
  RTA_DST: [1, 'bytes'],
  RTA_OIF: [4, 'u32'],
  RTA_GATEWAY: [5, 'bytes'],
  RTA_PRIORITY: [6, 'u32'],
  RTA_PREFSRC: [7, 'bytes'],
  RTA_METRICS: [8, RTAX],
  RTA_TABLE: [15, 'u32'],
  RTA_NH_ID: [30, 'u32'],
});

/** What an RTM_GETROUTE for one packet says of it. */
export const RTA_LOOKUP = attributeSet('RTA', {
  RTA_DST: [1, 'bytes'],
  RTA_SRC: [2, 'bytes'],
  RTA_IIF: [3, 'u32'],
  RTA_MARK: [16, 'u32'],
  RTA_UID: [25, 'u32'],
  RTA_IP_PROTO: [27, 'u8'],
  RTA_SPORT: [28, 'be16'],
  RTA_DPORT: [29, 'be16'],
});

export const RTN_UNICAST = 1;
export const RTN_LOCAL = 2;
export const RTN_BROADCAST = 3;
export const RTN_ANYCAST = 4;
export const RTN_BLACKHOLE = 6;
export const RTN_UNREACHABLE = 7;
export const RTN_PROHIBIT = 8;
export const RTN_THROW = 9;

export const RTPROT_KERNEL = 2;
export const RTPROT_BOOT = 3;
export const RTPROT_STATIC = 4;

export const RT_SCOPE_UNIVERSE = 0;
export const RT_SCOPE_LINK = 253;
export const RT_SCOPE_HOST = 254;
export const RT_SCOPE_NOWHERE = 255;

export const RT_TABLE_UNSPEC = 0;
export const RT_TABLE_MAIN = 254;
export const RT_TABLE_LOCAL = 255;

export const RTNH_F_ONLINK = 4;
/** A cached route, an exception learned from the network rather than one that was added. */
export const RTM_F_CLONED = 0x200;
/** In a lookup: tell the route that matched, in place of the way to the one address (Linux 4.13). */
export const RTM_F_FIB_MATCH = 0x2000;

// <linux/if_link.h> and <linux/veth.h>: attributes of links, bridges and bridge ports.
import { attributeSet } from '../attribute-set.ts';
import { BRIDGE_QUERIER } from './if-bridge.ts';

/** IFLA_INFO_DATA of a bridge. */
export const IFLA_BR = attributeSet('IFLA_BR', {
  IFLA_BR_FORWARD_DELAY: [1, 'u32'],
  IFLA_BR_STP_STATE: [5, 'u32'],
  IFLA_BR_VLAN_FILTERING: [7, 'u8'],
  IFLA_BR_MCAST_SNOOPING: [23, 'u8'],
  IFLA_BR_MCAST_QUERIER: [25, 'u8'],
  IFLA_BR_NF_CALL_IPTABLES: [36, 'u8'],
  IFLA_BR_NF_CALL_IP6TABLES: [37, 'u8'],
  /** Linux 5.15. */
  IFLA_BR_MCAST_QUERIER_STATE: [47, BRIDGE_QUERIER],
});

/** IFLA_INFO_DATA of a VLAN link. */
export const IFLA_VLAN = attributeSet('IFLA_VLAN', {
  IFLA_VLAN_ID: [1, 'u16'],
});

/** IFLA_INFO_DATA of a VXLAN device. Flags are 0 or 1, except those of no length, which are there or not. */
export const IFLA_VXLAN = attributeSet('IFLA_VXLAN', {
  IFLA_VXLAN_ID: [1, 'u32'],
  /** Where frames go whose destination the FDB does not know: a multicast group, or a host. */
  IFLA_VXLAN_GROUP: [2, 'bytes'],
  IFLA_VXLAN_LINK: [3, 'u32'],
  IFLA_VXLAN_LOCAL: [4, 'bytes'],
  IFLA_VXLAN_TTL: [5, 'u8'],
  IFLA_VXLAN_TOS: [6, 'u8'],
  IFLA_VXLAN_LEARNING: [7, 'u8'],
  IFLA_VXLAN_LIMIT: [9, 'u32'],
  IFLA_VXLAN_PROXY: [11, 'u8'],
  IFLA_VXLAN_RSC: [12, 'u8'],
  IFLA_VXLAN_PORT: [15, 'be16'],
  IFLA_VXLAN_GROUP6: [16, 'bytes'],
  IFLA_VXLAN_LOCAL6: [17, 'bytes'],
  IFLA_VXLAN_UDP_CSUM: [18, 'u8'],
  IFLA_VXLAN_UDP_ZERO_CSUM6_TX: [19, 'u8'],
  IFLA_VXLAN_UDP_ZERO_CSUM6_RX: [20, 'u8'],
  IFLA_VXLAN_REMCSUM_TX: [21, 'u8'],
  IFLA_VXLAN_REMCSUM_RX: [22, 'u8'],
  /** Of no length. */
  IFLA_VXLAN_GBP: [23, 'bytes'],
  IFLA_VXLAN_COLLECT_METADATA: [25, 'u8'],
  IFLA_VXLAN_LABEL: [26, 'be32'],
  /** Of no length. */
  IFLA_VXLAN_GPE: [27, 'bytes'],
  IFLA_VXLAN_TTL_INHERIT: [28, 'u8'],
  IFLA_VXLAN_DF: [29, 'u8'],
  IFLA_VXLAN_VNIFILTER: [30, 'u8'],
  IFLA_VXLAN_LOCALBYPASS: [31, 'u8'],
});

/** IFLA_INFO_DATA of a macvlan. */
export const IFLA_MACVLAN = attributeSet('IFLA_MACVLAN', {
  IFLA_MACVLAN_MODE: [1, 'u32'],
});

/** Values of IFLA_MACVLAN_MODE. */
export const MACVLAN_MODE_PRIVATE = 1;
export const MACVLAN_MODE_VEPA = 2;
export const MACVLAN_MODE_BRIDGE = 4;
export const MACVLAN_MODE_PASSTHRU = 8;

/** IFLA_INFO_DATA of a veth. The peer is shaped like a whole RTM_NEWLINK: an ifinfomsg, then IFLA attributes. */
export const VETH_INFO = attributeSet('VETH_INFO', {
  VETH_INFO_PEER: [1, 'bytes'],
});

/** IFLA_BRPORT_STATE of a port that lets frames pass, <linux/if_bridge.h>. */
export const BR_STATE_FORWARDING = 3;
/** Those on the way there, by the spanning tree: each lasts for the bridge's forward delay (br_forward_delay_timer_expired). */
export const BR_STATE_LISTENING = 1;
export const BR_STATE_LEARNING = 2;

/** A bridge port: its IFLA_INFO_SLAVE_DATA. Flags are 0 or 1. */
export const IFLA_BRPORT = attributeSet('IFLA_BRPORT', {
  IFLA_BRPORT_STATE: [1, 'u8'],
  /** Hairpin. */
  IFLA_BRPORT_MODE: [4, 'u8'],
  IFLA_BRPORT_GUARD: [5, 'u8'],
  IFLA_BRPORT_LEARNING: [8, 'u8'],
  IFLA_BRPORT_UNICAST_FLOOD: [9, 'u8'],
  IFLA_BRPORT_PROXYARP: [10, 'u8'],
  IFLA_BRPORT_MCAST_FLOOD: [27, 'u8'],
  IFLA_BRPORT_BCAST_FLOOD: [30, 'u8'],
  IFLA_BRPORT_NEIGH_SUPPRESS: [32, 'u8'],
  IFLA_BRPORT_ISOLATED: [33, 'u8'],
  IFLA_BRPORT_LOCKED: [39, 'u8'],
});

/** IFLA_INFO_DATA and IFLA_INFO_SLAVE_DATA depend on the kind beside them. */
export const IFLA_INFO = attributeSet('IFLA_INFO', {
  IFLA_INFO_KIND: [1, 'unterminated'],
  IFLA_INFO_DATA: [2, 'bytes'],
  IFLA_INFO_SLAVE_KIND: [4, 'unterminated'],
  IFLA_INFO_SLAVE_DATA: [5, 'bytes'],
});

/** What of a program of XDP a link tells: XDP_ATTACHED_NONE is 0. */
export const IFLA_XDP = attributeSet('IFLA_XDP', { IFLA_XDP_ATTACHED: [2, 'u8'] });

export const IFLA = attributeSet('IFLA', {
  IFLA_ADDRESS: [1, 'bytes'],
  IFLA_IFNAME: [3, 'string'],
  IFLA_MTU: [4, 'u32'],
  IFLA_LINK: [5, 'u32'],
  IFLA_MASTER: [10, 'u32'],
  IFLA_OPERSTATE: [16, 'u8'],
  IFLA_LINKINFO: [18, IFLA_INFO],
  // Its length is what counts; a NUL would become part of it.
  IFLA_IFALIAS: [20, 'unterminated'],
  /** struct rtnl_link_stats64 */
  IFLA_STATS64: [23, 'bytes'],
  // What it holds depends on the family of the message.
  IFLA_AF_SPEC: [26, 'bytes'],
  IFLA_NET_NS_FD: [28, 'u32'],
  IFLA_EXT_MASK: [29, 'u32'],
  IFLA_NUM_TX_QUEUES: [31, 'u32'],
  IFLA_NUM_RX_QUEUES: [32, 'u32'],
  IFLA_LINK_NETNSID: [37, 's32'],
  IFLA_XDP: [43, IFLA_XDP],
  IFLA_TARGET_NETNSID: [46, 's32'],
});

/** In IFLA_EXT_MASK: list the VLANs of bridge ports, neighbouring ones with the same flags as one range. */
export const RTEXT_FILTER_BRVLAN_COMPRESSED = 4;
/** In IFLA_EXT_MASK: leave the counters out of answers, about half of their size. */
export const RTEXT_FILTER_SKIP_STATS = 8;

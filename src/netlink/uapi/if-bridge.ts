// <linux/if_bridge.h>: what IFLA_AF_SPEC holds in messages of family AF_BRIDGE, who listens to groups, and who asks for that.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/**
 * struct bridge_vlan_info {
 *   __u16 flags;   // BRIDGE_VLAN_INFO_*
 *   __u16 vid;     // 1 to 4094
 * };
 */
export const bridge_vlan_info = struct('bridge_vlan_info', 4, {
  flags: ['u16', 0],
  vid: ['u16', 2],
});

/** IFLA_BRIDGE_VLAN_INFO may be there many times. */
export const IFLA_BRIDGE = attributeSet('IFLA_BRIDGE', {
  IFLA_BRIDGE_FLAGS: [0, 'u16'],
  IFLA_BRIDGE_VLAN_INFO: [2, 'bytes'],
});

/** In IFLA_BRIDGE_FLAGS: the link of the message is the bridge itself, no port of one. */
export const BRIDGE_FLAGS_SELF = 2;

export const BRIDGE_VLAN_INFO_PVID = 2;
export const BRIDGE_VLAN_INFO_UNTAGGED = 4;
/** Two entries with these flags stand for all VLANs from the one to the other. */
export const BRIDGE_VLAN_INFO_RANGE_BEGIN = 8;
export const BRIDGE_VLAN_INFO_RANGE_END = 16;

/** IFLA_BR_MCAST_QUERIER_STATE: who asks for listeners, by family. */
export const BRIDGE_QUERIER = attributeSet('BRIDGE_QUERIER', {
  /** In milliseconds, a number of 64 bits: there while somebody else than the bridge asks. */
  BRIDGE_QUERIER_IPV6_OTHER_TIMER: [7, 'bytes'],
});

/**
 * struct br_port_msg {
 *   __u8  family;
 *   __u32 ifindex;
 * };
 */
export const br_port_msg = struct('br_port_msg', 8, { family: ['u8', 0], ifindex: ['u32', 4] });

/**
 * struct br_mdb_entry {
 *   __u32 ifindex;     // the port; the bridge for what itself listens to
 *   __u8  state;
 *   __u8  flags;
 *   __u16 vid;
 *   struct {
 *     union { __be32 ip4; struct in6_addr ip6; unsigned char mac_addr[6]; } u;
 *     __be16 proto;    // ETH_P_*
 *   } addr;
 * };
 */
export const br_mdb_entry = struct('br_mdb_entry', 28, { ifindex: ['u32', 0], proto: ['be16', 24] });
/** Where br_mdb_entry has `addr.u`. */
export const MDB_ENTRY_ADDRESS_AT = 8;

/** Nests of an RTM_NEWMDB, one in the other; there may be many of each. The last one is a br_mdb_entry and attributes. */
export const MDBA_MDB = 1;
export const MDBA_MDB_ENTRY = 1;
export const MDBA_MDB_ENTRY_INFO = 1;

// <linux/if_bridge.h>: what IFLA_AF_SPEC holds in messages of family AF_BRIDGE.
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

// <linux/net_dropmon.h>: packets that the kernel dropped, anywhere on the machine. Host byte order.
import { attributeSet } from '../attribute-set.ts';

/** Exists in the machine's first network namespace alone. */
export const NET_DM_GENL_NAME = 'NET_DM';
export const NET_DM_GENL_VERSION = 2;

/** Its multicast group has this number on every machine (genl_validate_assign_mc_groups, net/netlink/genetlink.c). */
export const NET_DM_GRP_ALERT = 1;

export const NET_DM_CMD = {
  NET_DM_CMD_CONFIG: 2,
  NET_DM_CMD_START: 3,
  NET_DM_CMD_STOP: 4,
  NET_DM_CMD_PACKET_ALERT: 5,
  NET_DM_CMD_CONFIG_GET: 6,
} as const;

// enum net_dm_alert_mode
export const NET_DM_ALERT_MODE_SUMMARY = 0;
export const NET_DM_ALERT_MODE_PACKET = 1;

export const NET_DM_ATTRIBUTES = attributeSet('NET_DM_ATTR', {
  NET_DM_ATTR_ALERT_MODE: [1, 'u8'],
  /** Where in the kernel's code: `udp_queue_rcv_one_skb+0x2d5/0x5a0`. */
  NET_DM_ATTR_SYMBOL: [3, 'string'],
  /** ETH_P_*, in host byte order. */
  NET_DM_ATTR_PROTO: [6, 'u16'],
  /** From the link's header on. */
  NET_DM_ATTR_PAYLOAD: [7, 'bytes'],
  /** How much of a packet is told at most; 0: all. */
  NET_DM_ATTR_TRUNC_LEN: [9, 'u32'],
  /** How many packets of a processor wait to be told; more are not told. */
  NET_DM_ATTR_QUEUE_LEN: [11, 'u32'],
  /** Without its prefix SKB_DROP_REASON_ (Linux 5.17). */
  NET_DM_ATTR_REASON: [23, 'string'],
});

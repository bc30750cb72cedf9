// <linux/netfilter/nfnetlink_log.h>: packets that rules ask to log, and those of -j TRACE in legacy iptables.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

export const NFNL_SUBSYS_ULOG = 4;

export const NFULNL_MSG_PACKET = 0;
export const NFULNL_MSG_CONFIG = 1;

/** struct nfulnl_msg_config_cmd { __u8 command; } */
export const NFULNL_CFG_CMD_BIND = 1;
export const NFULNL_COPY_PACKET = 2;

/**
 * struct nfulnl_msg_config_mode {
 *   __be32 copy_range;
 *   __u8   copy_mode;
 *   __u8   _pad;
 * } __attribute__ ((packed));
 */
export const nfulnl_msg_config_mode = struct('nfulnl_msg_config_mode', 6, {
  copy_range: ['be32', 0],
  copy_mode: ['u8', 4],
});

export const NFULA_CFG = attributeSet('NFULA_CFG', {
  NFULA_CFG_CMD: [1, 'u8'],
  NFULA_CFG_MODE: [2, 'bytes'],
  /** After how many packets the kernel sends them. */
  NFULA_CFG_QTHRESH: [5, 'be32'],
});

/**
 * struct nfulnl_msg_packet_hdr {
 *   __be16 hw_protocol;
 *   __u8   hook;
 *   __u8   _pad;
 * };
 */
export const nfulnl_msg_packet_hdr = struct('nfulnl_msg_packet_hdr', 4, {
  hw_protocol: ['be16', 0],
  hook: ['u8', 2],
});

export const NFULA = attributeSet('NFULA', {
  NFULA_PACKET_HDR: [1, 'bytes'],
  NFULA_PAYLOAD: [9, 'bytes'],
  NFULA_PREFIX: [10, 'string'],
});

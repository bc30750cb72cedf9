// <linux/ip_vs.h>: virtual servers. Host byte order, except ports.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';
import { NLA_F_NESTED } from './netlink.ts';

export const IPVS_GENL_NAME = 'IPVS';
export const IPVS_GENL_VERSION = 1;

export const IPVS_CMD = {
  IPVS_CMD_NEW_SERVICE: 1,
  IPVS_CMD_SET_SERVICE: 2,
  IPVS_CMD_DEL_SERVICE: 3,
  IPVS_CMD_GET_SERVICE: 4,
  IPVS_CMD_NEW_DEST: 5,
  IPVS_CMD_SET_DEST: 6,
  IPVS_CMD_DEL_DEST: 7,
  IPVS_CMD_GET_DEST: 8,
  IPVS_CMD_SET_CONFIG: 12,
  IPVS_CMD_GET_CONFIG: 13,
  IPVS_CMD_GET_INFO: 15,
} as const;

export const IP_VS_SVC_F_PERSISTENT = 0x0001;
/** Set by the kernel on every virtual server it holds. */
export const IP_VS_SVC_F_HASHED = 0x0002;
/** One-packet scheduling of UDP: no datagram belongs to a connection, and answers are not translated. */
export const IP_VS_SVC_F_ONEPACKET = 0x0004;
/** Scheduler mh: when the chosen destination cannot be used, look on in the table. */
export const IP_VS_SVC_F_SCHED_MH_FALLBACK = 0x0008;
/** Scheduler mh: hash the source port too. */
export const IP_VS_SVC_F_SCHED_MH_PORT = 0x0010;
/** Scheduler sh: go on to another destination where the one of the hash has weight 0. IP_VS_SVC_F_SCHED1, as that of mh. */
export const IP_VS_SVC_F_SCHED_SH_FALLBACK = 0x0008;

/** IPVS_DEST_ATTR_FWD_METHOD: rewrite addresses and ports. */
export const IP_VS_CONN_F_MASQ = 0;
export const IP_VS_CONN_F_FWD_MASK = 0x0007;

/** The value of IPVS_SVC_ATTR_FLAGS: `mask` says which bits of `flags` count. */
export const ip_vs_flags = struct('ip_vs_flags', 8, { flags: ['u32', 0], mask: ['u32', 4] });

/** Counters, all of 64 bits (`bytes` of eight, host order). */
export const IPVS_STATS64 = attributeSet('IPVS_STATS64', {
  IPVS_STATS_ATTR_CONNS: [1, 'bytes'],
  IPVS_STATS_ATTR_INPKTS: [2, 'bytes'],
  IPVS_STATS_ATTR_OUTPKTS: [3, 'bytes'],
  IPVS_STATS_ATTR_INBYTES: [4, 'bytes'],
  IPVS_STATS_ATTR_OUTBYTES: [5, 'bytes'],
});

/** A virtual server: named by AF, PROTOCOL, ADDR and PORT, or by AF and FWMARK. */
export const IPVS_SVC = attributeSet('IPVS_SVC', {
  IPVS_SVC_ATTR_AF: [1, 'u16'],
  IPVS_SVC_ATTR_PROTOCOL: [2, 'u16'],
  /** union nf_inet_addr: 16 bytes, an IPv4 address in the first four. */
  IPVS_SVC_ATTR_ADDR: [3, 'bytes'],
  IPVS_SVC_ATTR_PORT: [4, 'be16'],
  IPVS_SVC_ATTR_FWMARK: [5, 'u32'],
  IPVS_SVC_ATTR_SCHED_NAME: [6, 'string'],
  /** struct ip_vs_flags */
  IPVS_SVC_ATTR_FLAGS: [7, 'bytes'],
  /** Of persistence, in seconds. */
  IPVS_SVC_ATTR_TIMEOUT: [8, 'u32'],
  /** Of persistence: IPv4 a mask in network order, IPv6 a prefix length in host order. */
  IPVS_SVC_ATTR_NETMASK: [9, 'u32'],
  /** IPVS_STATS64 */
  IPVS_SVC_ATTR_STATS64: [12, 'bytes'],
});

/** A destination of a virtual server: named by ADDR, PORT and ADDR_FAMILY. */
export const IPVS_DEST = attributeSet('IPVS_DEST', {
  /** As IPVS_SVC_ATTR_ADDR. */
  IPVS_DEST_ATTR_ADDR: [1, 'bytes'],
  IPVS_DEST_ATTR_PORT: [2, 'be16'],
  IPVS_DEST_ATTR_FWD_METHOD: [3, 'u32'],
  IPVS_DEST_ATTR_WEIGHT: [4, 'u32'],
  IPVS_DEST_ATTR_U_THRESH: [5, 'u32'],
  IPVS_DEST_ATTR_L_THRESH: [6, 'u32'],
  IPVS_DEST_ATTR_ACTIVE_CONNS: [7, 'u32'],
  IPVS_DEST_ATTR_INACT_CONNS: [8, 'u32'],
  IPVS_DEST_ATTR_PERSIST_CONNS: [9, 'u32'],
  IPVS_DEST_ATTR_ADDR_FAMILY: [11, 'u16'],
  /** IPVS_STATS64 */
  IPVS_DEST_ATTR_STATS64: [12, 'bytes'],
});

/** The first level of a message. */
export const IPVS_CMD_ATTRIBUTES = attributeSet('IPVS_CMD', {
  IPVS_CMD_ATTR_SERVICE: [1 | NLA_F_NESTED, IPVS_SVC],
  IPVS_CMD_ATTR_DEST: [2 | NLA_F_NESTED, IPVS_DEST],
  // Timeouts in seconds; 0 leaves one as it is.
  IPVS_CMD_ATTR_TIMEOUT_TCP: [4, 'u32'],
  IPVS_CMD_ATTR_TIMEOUT_TCP_FIN: [5, 'u32'],
  IPVS_CMD_ATTR_TIMEOUT_UDP: [6, 'u32'],
});

/** The answer to IPVS_CMD_GET_INFO. */
export const IPVS_INFO = attributeSet('IPVS_INFO', {
  /** IP_VS_VERSION_CODE: 0x010201 is 1.2.1. */
  IPVS_INFO_ATTR_VERSION: [1, 'u32'],
  IPVS_INFO_ATTR_CONN_TAB_SIZE: [2, 'u32'],
});

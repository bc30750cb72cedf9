// <linux/inet_diag.h>, <linux/sock_diag.h>: sockets of a namespace. Ports are in network byte order.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

export const NETLINK_SOCK_DIAG = 4;
export const SOCK_DIAG_BY_FAMILY = 20;

/** States as bits of `idiag_states` (<net/tcp_states.h>). A UDP socket that is not connected is closed. */
export const TCPF_ESTABLISHED = 1 << 1;
export const TCPF_SYN_SENT = 1 << 2;
export const TCPF_SYN_RECV = 1 << 3;
export const TCPF_FIN_WAIT1 = 1 << 4;
export const TCPF_FIN_WAIT2 = 1 << 5;
export const TCPF_CLOSE = 1 << 7;
export const TCPF_CLOSE_WAIT = 1 << 8;
export const TCPF_LISTEN = 1 << 10;

/**
 * struct inet_diag_req_v2 {
 *   __u8  sdiag_family;
 *   __u8  sdiag_protocol;
 *   __u8  idiag_ext;
 *   __u8  pad;
 *   __u32 idiag_states;
 *   struct inet_diag_sockid id;  // 48 bytes
 * };
 */
export const inet_diag_req_v2 = struct('inet_diag_req_v2', 56, {
  sdiag_family: ['u8', 0],
  sdiag_protocol: ['u8', 1],
  idiag_ext: ['u8', 2],
  idiag_states: ['u32', 4],
});

/** Offset of `id.idiag_src` in struct inet_diag_msg: four bytes, then both ports. */
export const IDIAG_SRC = 8;

/**
 * struct inet_diag_msg {
 *   __u8 idiag_family, idiag_state, idiag_timer, idiag_retrans;
 *   struct inet_diag_sockid id;  // __be16 sport, dport; __be32 src[4], dst[4]; __u32 if, cookie[2]
 *   __u32 idiag_expires, idiag_rqueue, idiag_wqueue, idiag_uid, idiag_inode;
 * };
 */
export const inet_diag_msg = struct('inet_diag_msg', 72, {
  idiag_family: ['u8', 0],
  idiag_state: ['u8', 1],
  idiag_sport: ['be16', 4],
  idiag_dport: ['be16', 6],
  idiag_if: ['u32', 40],
  idiag_rqueue: ['u32', 56],
  idiag_wqueue: ['u32', 60],
  idiag_inode: ['u32', 68],
});

export const INET_DIAG = attributeSet('INET_DIAG', {
  INET_DIAG_SKMEMINFO: [7, 'bytes'],
  INET_DIAG_SKV6ONLY: [11, 'u8'],
  INET_DIAG_MARK: [15, 'u32'],
  INET_DIAG_MD5SIG: [18, 'bytes'],
  // __u64, since Linux 5.8.
  INET_DIAG_CGROUP_ID: [21, 'bytes'],
});

/** What of attributes 1 to 8 is asked for is a bit of `idiag_ext`, lower by one. */
export const WITH_SKMEMINFO = 1 << 6;
/** INET_DIAG_INFO, with which INET_DIAG_MD5SIG comes to who has CAP_NET_ADMIN (inet_sk_diag_fill, net/ipv4/inet_diag.c). */
export const WITH_INFO = 1 << 1;

/** Of the __u32 in INET_DIAG_SKMEMINFO those of the receive queue (SK_MEMINFO_RMEM_ALLOC, SK_MEMINFO_RCVBUF, <linux/sock_diag.h>). */
export const sk_meminfo = struct('sk_meminfo', 8, { rmem_alloc: ['u32', 0], rcvbuf: ['u32', 4] });

/**
 * INET_DIAG_MD5SIG is an array of them (<linux/tcp.h>):
 *
 * struct tcp_diag_md5sig {
 *   __u8 tcpm_family, tcpm_prefixlen; __u16 tcpm_keylen;
 *   __be32 tcpm_addr[4];
 *   __u8 tcpm_key[80];  // the secret itself
 * };
 */
export const tcp_diag_md5sig = struct('tcp_diag_md5sig', 100, { tcpm_family: ['u8', 0], tcpm_prefixlen: ['u8', 1] });
/** Offset of `tcpm_addr`. */
export const TCPM_ADDR = 4;

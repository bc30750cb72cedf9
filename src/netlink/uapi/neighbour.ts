// <linux/neighbour.h>: neighbours (ARP, neighbour discovery) and forwarding database entries.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/**
 * struct ndmsg {
 *   __u8  ndm_family;   // AF_INET, AF_INET6; AF_BRIDGE for a forwarding database
 *   __u8  ndm_pad1;
 *   __u16 ndm_pad2;
 *   __s32 ndm_ifindex;
 *   __u16 ndm_state;    // NUD_*
 *   __u8  ndm_flags;    // NTF_*
 *   __u8  ndm_type;     // RTN_*
 * };
 */
export const ndmsg = struct('ndmsg', 12, {
  ndm_family: ['u8', 0],
  ndm_ifindex: ['s32', 4],
  ndm_state: ['u16', 8],
  ndm_flags: ['u8', 10],
  ndm_type: ['u8', 11],
});

export const NDA = attributeSet('NDA', {
  NDA_DST: [1, 'bytes'],
  NDA_LLADDR: [2, 'bytes'],
  NDA_CACHEINFO: [3, 'bytes'],
  NDA_VLAN: [5, 'u16'],
  NDA_PORT: [6, 'be16'],
  NDA_VNI: [7, 'u32'],
  NDA_IFINDEX: [8, 'u32'],
  NDA_MASTER: [9, 'u32'],
  NDA_NH_ID: [13, 'u32'],
});

/**
 * struct nda_cacheinfo {
 *   __u32 ndm_confirmed;   // ago, in ticks of USER_HZ
 *   __u32 ndm_used;
 *   __u32 ndm_updated;
 *   __u32 ndm_refcnt;
 * };
 */
export const ndaCacheinfo = struct('nda_cacheinfo', 16, {
  ndm_updated: ['u32', 8],
});

/** The kernel does with the entry what it would do for a packet. */
export const NTF_USE = 0x01;
export const NTF_SELF = 0x02;
export const NTF_MASTER = 0x04;
export const NTF_PROXY = 0x08;
export const NTF_STICKY = 0x40;

export const NUD_NONE = 0x00;
export const NUD_INCOMPLETE = 0x01;
export const NUD_REACHABLE = 0x02;
export const NUD_STALE = 0x04;
export const NUD_DELAY = 0x08;
export const NUD_PROBE = 0x10;
export const NUD_FAILED = 0x20;
export const NUD_NOARP = 0x40;
export const NUD_PERMANENT = 0x80;

// <linux/if_addr.h>: interface addresses.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/**
 * struct ifaddrmsg {
 *   __u8  ifa_family;
 *   __u8  ifa_prefixlen;
 *   __u8  ifa_flags;      // the low byte; IFA_FLAGS counts when present
 *   __u8  ifa_scope;      // RT_SCOPE_*
 *   __u32 ifa_index;
 * };
 */
export const ifaddrmsg = struct('ifaddrmsg', 8, {
  ifa_family: ['u8', 0],
  ifa_prefixlen: ['u8', 1],
  ifa_flags: ['u8', 2],
  ifa_scope: ['u8', 3],
  ifa_index: ['u32', 4],
});

export const IFA = attributeSet('IFA', {
  IFA_ADDRESS: [1, 'bytes'],
  IFA_LOCAL: [2, 'bytes'],
  IFA_LABEL: [3, 'string'],
  IFA_BROADCAST: [4, 'bytes'],
  IFA_FLAGS: [8, 'u32'],
  IFA_TARGET_NETNSID: [10, 's32'],
});

export const IFA_F_SECONDARY = 0x01;
export const IFA_F_NODAD = 0x02;
export const IFA_F_OPTIMISTIC = 0x04;
export const IFA_F_DADFAILED = 0x08;
export const IFA_F_TENTATIVE = 0x40;
export const IFA_F_PERMANENT = 0x80;

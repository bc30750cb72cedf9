// <linux/xfrm.h>: what IPsec does with packets.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

export const NETLINK_XFRM = 6;
export const XFRM_MSG_GETSA = 0x12;
export const XFRM_MSG_GETPOLICY = 0x15;
/** Since Linux 5.15. */
export const XFRM_MSG_GETDEFAULT = 0x28;

/** struct xfrm_usersa_id: an address, an SPI, a family and a protocol. */
export const xfrm_usersa_id = struct('xfrm_usersa_id', 24, {});

/** struct xfrm_userpolicy_id: a selector, an index and a direction. */
export const xfrm_userpolicy_id = struct('xfrm_userpolicy_id', 64, {});

/**
 * struct xfrm_userpolicy_info {
 *   struct xfrm_selector sel;  // 56 bytes: daddr[16], saddr[16], four __be16 of ports and their masks, and the fields below
 *   struct xfrm_lifetime_cfg lft; struct xfrm_lifetime_cur curlft;  // 96 bytes
 *   __u32 priority, index;
 *   __u8 dir, action, flags, share;
 * };
 */
export const xfrm_userpolicy_info = struct('xfrm_userpolicy_info', 168, {
  family: ['u16', 40],
  prefixlen_d: ['u8', 42],
  prefixlen_s: ['u8', 43],
  proto: ['u8', 44],
  action: ['u8', 161],
});

/** Offsets of its addresses. */
export const XFRM_DADDR = 0;
export const XFRM_SADDR = 16;

/** struct xfrm_userpolicy_default: XFRM_USERPOLICY_* for packets that no policy is for. */
export const xfrm_userpolicy_default = struct('xfrm_userpolicy_default', 3, {
  in: ['u8', 0],
  fwd: ['u8', 1],
  out: ['u8', 2],
});
export const XFRM_USERPOLICY_BLOCK = 1;
/** What a policy does with packets that it wraps in nothing: it lets them pass. */
export const XFRM_POLICY_ALLOW = 0;

export const XFRMA = attributeSet('XFRMA', {
  /** struct xfrm_user_tmpl[]: what packets are wrapped in. Not there where that is nothing. */
  XFRMA_TMPL: [5, 'bytes'],
});

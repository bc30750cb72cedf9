// <linux/nexthop.h>: nexthop objects (Linux 5.3), which routes name instead of a gateway and a link of their own.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

/**
 * struct nhmsg {
 *   unsigned char nh_family;    // AF_INET, AF_INET6; AF_UNSPEC of a group
 *   unsigned char nh_scope;     // RT_SCOPE_*, in answers only
 *   unsigned char nh_protocol;  // RTPROT_*
 *   unsigned char resvd;
 *   unsigned int  nh_flags;     // RTNH_F_*
 * };
 */
export const nhmsg = struct('nhmsg', 8, {
  nh_family: ['u8', 0],
  nh_scope: ['u8', 1],
  nh_protocol: ['u8', 2],
  nh_flags: ['u32', 4],
});

export const NHA = attributeSet('NHA', {
  NHA_ID: [1, 'u32'],
  NHA_OIF: [5, 'u32'],
  NHA_GATEWAY: [6, 'bytes'],
});

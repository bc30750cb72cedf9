// <linux/net_namespace.h>: numbers one namespace has for others.
import { attributeSet } from '../attribute-set.ts';
import { struct } from '../struct.ts';

export const RTM_GETNSID = 90;

/** struct rtgenmsg { unsigned char rtgen_family; }, padded. */
export const rtgenmsg = struct('rtgenmsg', 4, { rtgen_family: ['u8', 0] });

export const NETNSA = attributeSet('NETNSA', { NETNSA_NSID: [1, 's32'], NETNSA_FD: [3, 'u32'] });

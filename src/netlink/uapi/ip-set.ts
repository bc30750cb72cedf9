// <linux/netfilter/ipset/ip_set.h>: sets of addresses and ports. Values are in network byte order, and say so by a flag.
import { attributeSet } from '../attribute-set.ts';
import { NLA_F_NESTED } from './netlink.ts';

export const NFNL_SUBSYS_IPSET = 6;

/** The oldest version of the protocol kernels still speak. */
export const IPSET_PROTOCOL = 6;
/** The first version in which sets are asked for by number: Linux 4.20. */
export const IPSET_PROTOCOL_WITH_INDEX = 7;

export const IPSET_CMD = {
  IPSET_CMD_PROTOCOL: 1,
  IPSET_CMD_CREATE: 2,
  IPSET_CMD_DESTROY: 3,
  IPSET_CMD_FLUSH: 4,
  IPSET_CMD_RENAME: 5,
  IPSET_CMD_SWAP: 6,
  IPSET_CMD_LIST: 7,
  IPSET_CMD_ADD: 9,
  IPSET_CMD_DEL: 10,
  IPSET_CMD_TYPE: 13,
  IPSET_CMD_GET_BYINDEX: 15,
} as const;

/** In IPSET_ATTR_FLAGS of a listing: leave the members out. */
export const IPSET_FLAG_LIST_HEADER = 1 << 2;
/** In IPSET_ATTR_CADT_FLAGS of a member: what it matches is not in the set. */
export const IPSET_FLAG_NOMATCH = 1 << 2;
/** In IPSET_ATTR_CADT_FLAGS of a set: members carry comments. */
export const IPSET_FLAG_WITH_COMMENT = 1 << 4;
/** In IPSET_ATTR_CADT_FLAGS of a set: members carry marks, priorities and queues. */
export const IPSET_FLAG_WITH_SKBINFO = 1 << 6;

const NLA_F_NET_BYTEORDER = 0x4000;

/** An address: one of the two. */
const IPSET_ATTR_IPADDR = attributeSet('IPSET_ATTR_IPADDR', {
  IPSET_ATTR_IPADDR_IPV4: [1 | NLA_F_NET_BYTEORDER, 'bytes'],
  IPSET_ATTR_IPADDR_IPV6: [2 | NLA_F_NET_BYTEORDER, 'bytes'],
});

/** A member: IPSET_ATTR_DATA of a change, or within IPSET_ATTR_ADT of a listing. */
export const IPSET_MEMBER = attributeSet('IPSET_MEMBER', {
  IPSET_ATTR_IP: [1 | NLA_F_NESTED, IPSET_ATTR_IPADDR],
  IPSET_ATTR_CIDR: [3, 'u8'],
  IPSET_ATTR_PORT: [4 | NLA_F_NET_BYTEORDER, 'be16'],
  /** Seconds; 0 for a member that stays. */
  IPSET_ATTR_TIMEOUT: [6 | NLA_F_NET_BYTEORDER, 'be32'],
  IPSET_ATTR_PROTO: [7, 'u8'],
  IPSET_ATTR_CADT_FLAGS: [8 | NLA_F_NET_BYTEORDER, 'be32'],
  /** Which member of a message it is; comes back when this one is refused. */
  IPSET_ATTR_LINENO: [9 | NLA_F_NET_BYTEORDER, 'be32'],
  IPSET_ATTR_IP2: [20 | NLA_F_NESTED, IPSET_ATTR_IPADDR],
  IPSET_ATTR_CIDR2: [21, 'u8'],
  IPSET_ATTR_COMMENT: [26, 'string'],
  /** be64: the mark, then which of its bits count. */
  IPSET_ATTR_SKBMARK: [27 | NLA_F_NET_BYTEORDER, 'bytes'],
});

/** How a set is made: IPSET_ATTR_DATA of a creation or of a listing. */
export const IPSET_SHAPE = attributeSet('IPSET_SHAPE', {
  IPSET_ATTR_PORT: [4 | NLA_F_NET_BYTEORDER, 'be16'],
  IPSET_ATTR_PORT_TO: [5 | NLA_F_NET_BYTEORDER, 'be16'],
  /** Seconds, of members that are added without. */
  IPSET_ATTR_TIMEOUT: [6 | NLA_F_NET_BYTEORDER, 'be32'],
  IPSET_ATTR_CADT_FLAGS: [8 | NLA_F_NET_BYTEORDER, 'be32'],
  /** Of addresses, which are looked up without the other bits: a length, or a mask of any bits. */
  IPSET_ATTR_NETMASK: [20, 'u8'],
  IPSET_ATTR_BITMASK: [12 | NLA_F_NESTED, IPSET_ATTR_IPADDR],
  IPSET_ATTR_HASHSIZE: [18 | NLA_F_NET_BYTEORDER, 'be32'],
  IPSET_ATTR_MAXELEM: [19 | NLA_F_NET_BYTEORDER, 'be32'],
});

/** In IPSET_ATTR_ADT each member is one IPSET_ATTR_DATA. */
export const IPSET_ATTR_DATA = 7;

/** The first level of a message. IPSET_ATTR_DATA depends on the command. */
export const IPSET_ATTRIBUTES = attributeSet('IPSET', {
  IPSET_ATTR_PROTOCOL: [1, 'u8'],
  IPSET_ATTR_SETNAME: [2, 'string'],
  /** IPSET_ATTR_SETNAME2 of a swap or a renaming. */
  IPSET_ATTR_TYPENAME: [3, 'string'],
  IPSET_ATTR_REVISION: [4, 'u8'],
  IPSET_ATTR_FAMILY: [5, 'u8'],
  IPSET_ATTR_FLAGS: [6 | NLA_F_NET_BYTEORDER, 'be32'],
  IPSET_ATTR_DATA: [IPSET_ATTR_DATA | NLA_F_NESTED, 'bytes'],
  IPSET_ATTR_ADT: [8 | NLA_F_NESTED, 'bytes'],
  IPSET_ATTR_LINENO: [9 | NLA_F_NET_BYTEORDER, 'be32'],
  IPSET_ATTR_PROTOCOL_MIN: [10, 'u8'],
  IPSET_ATTR_INDEX: [11 | NLA_F_NET_BYTEORDER, 'be16'],
});

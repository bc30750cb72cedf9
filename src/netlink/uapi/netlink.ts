// <linux/netlink.h>: framing, control messages and socket options common to all netlink families.
import { struct } from '../struct.ts';

export const AF_NETLINK = 16;

export const NETLINK_ROUTE = 0;
export const NETLINK_NETFILTER = 12;
export const NETLINK_GENERIC = 16;

export const SOL_NETLINK = 270;
export const NETLINK_ADD_MEMBERSHIP = 1;
export const NETLINK_DROP_MEMBERSHIP = 2;
export const NETLINK_CAP_ACK = 10;
export const NETLINK_EXT_ACK = 11;
export const NETLINK_GET_STRICT_CHK = 12;

/**
 * struct sockaddr_nl {
 *   __kernel_sa_family_t nl_family;  // AF_NETLINK
 *   unsigned short       nl_pad;
 *   __u32                nl_pid;     // port ID
 *   __u32                nl_groups;  // multicast groups mask
 * };
 */
export const sockaddr_nl = struct('sockaddr_nl', 12, {
  nl_family: ['u16', 0],
  nl_pid: ['u32', 4],
  nl_groups: ['u32', 8],
});

/**
 * struct nlmsghdr {
 *   __u32 nlmsg_len;    // of the message, this header included, padding not
 *   __u16 nlmsg_type;
 *   __u16 nlmsg_flags;
 *   __u32 nlmsg_seq;
 *   __u32 nlmsg_pid;    // port ID of the sending socket
 * };
 */
export const nlmsghdr = struct('nlmsghdr', 16, {
  nlmsg_len: ['u32', 0],
  nlmsg_type: ['u16', 4],
  nlmsg_flags: ['u16', 6],
  nlmsg_seq: ['u32', 8],
  nlmsg_pid: ['u32', 12],
});

/** sizeof(struct nlmsghdr). */
export const NLMSG_HDRLEN = 16;
/** Messages and attributes begin at multiples of this. */
export const NLMSG_ALIGNTO = 4;

export const NLMSG_NOOP = 1;
export const NLMSG_ERROR = 2;
export const NLMSG_DONE = 3;
export const NLMSG_OVERRUN = 4;
/** Types below are control messages. */
export const NLMSG_MIN_TYPE = 0x10;

export const NLM_F_REQUEST = 0x01;
export const NLM_F_MULTI = 0x02;
export const NLM_F_ACK = 0x04;
export const NLM_F_ECHO = 0x08;
export const NLM_F_DUMP_INTR = 0x10;
// Modifiers of GET requests.
export const NLM_F_DUMP = 0x300;
// Modifiers of NEW requests.
export const NLM_F_REPLACE = 0x100;
export const NLM_F_EXCL = 0x200;
export const NLM_F_CREATE = 0x400;
export const NLM_F_APPEND = 0x800;
// Flags of NLMSG_ERROR.
export const NLM_F_CAPPED = 0x100;
export const NLM_F_ACK_TLVS = 0x200;

/** sizeof(struct nlattr): u16 length, this header included and padding not; u16 type. */
export const NLA_HDRLEN = 4;
/** In the type of an attribute: its value is a nest of attributes. */
export const NLA_F_NESTED = 0x8000;
/** The type without that flag and NLA_F_NET_BYTEORDER (0x4000), in 16 bits. */
export const NLA_TYPE_MASK = 0x3fff;

/** The number an acknowledgement begins with: 0, or a negative errno. */
export const nlmsgerr = struct('nlmsgerr', 4, { error: ['s32', 0] });

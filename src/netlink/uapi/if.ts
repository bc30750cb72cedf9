// <linux/if.h>: interface flags (ifi_flags) and the operational state of a usable link (IFLA_OPERSTATE).

/** The loopback link of each namespace (include/net/flow.h). */
export const LOOPBACK_IFINDEX = 1;

export const IFF_UP = 0x1;
export const IFF_NOARP = 0x80;
export const IFF_LOOPBACK = 0x8;
export const IFF_PROMISC = 0x100;
/** There is a carrier. */
export const IFF_LOWER_UP = 0x10000;

export const IF_OPER_UP = 6;

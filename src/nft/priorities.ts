// Priorities of base chains: enum nf_ip_hook_priorities of <linux/netfilter_ipv4.h>, the same numbers in <linux/netfilter_ipv6.h>.

/** Before connection tracking. */
export const RAW = -300;
/** Where packets are changed: connection tracking has seen them, and nothing has translated them yet. */
export const MANGLE = -150;
/** Where destinations are translated. */
export const DSTNAT = -100;
export const FILTER = 0;
/** Where sources are translated. */
export const SRCNAT = 100;

export { resolveFamily } from './generic-family.ts';
export { listInSlices } from './list-in-slices.ts';
export { appendMessage, type NetlinkMessage, type NetlinkRequest, readMessages } from './message.ts';
export { Netlink } from './netlink.ts';
export type { NetlinkTransport } from './transport.ts';
export { closing, openTogether, withNetlink } from './with-netlink.ts';

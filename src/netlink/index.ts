export { resolveFamily } from './generic-family.ts';
export { appendMessage, type NetlinkMessage, type NetlinkRequest, readMessages } from './message.ts';
export { Netlink } from './netlink.ts';
export type { NetlinkTransport } from './transport.ts';
export { closing, listInSlices, openTogether, withNetlink } from './with-netlink.ts';

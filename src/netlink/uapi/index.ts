export * from './if.ts';
export * from './if-addr.ts';
export * from './if-link.ts';
export * from './neighbour.ts';
export * from './netlink.ts';
export * from './nfnetlink.ts';
export * from './nfnetlink-conntrack.ts';
export * from './rtnetlink.ts';

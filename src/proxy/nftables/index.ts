export { checkNftables, isProbeTable } from './check-nftables.ts';
export { cleanupNftables } from './cleanup.ts';
export { KUBE_PROXY_TABLE, stickyNames, TABLE_NAME } from './compile/names.ts';
export { NftablesDataplane, type NftablesDataplaneOptions } from './dataplane.ts';
export { nftablesMode } from './mode/nftables-mode.ts';

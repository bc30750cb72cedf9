export { cleanupNftables } from './cleanup.ts';
export { NftablesDataplane, type NftablesDataplaneOptions } from './dataplane.ts';
export type { WatchNftables } from './foreign-watch.ts';
export { TABLE_NAME } from './names.ts';
export { checkNftables } from './preflight.ts';

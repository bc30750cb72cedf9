export { isHarmless } from './harmless.ts';
export { hookedIn } from './hooked-in.ts';
export { KernelRules } from './kernel-rules.ts';
export { NftRules } from './nft-rules.ts';
export { isOwnTable } from './own-tables.ts';

export { rulesAreHarmless } from './harmless.ts';
export { KernelRules } from './kernel-rules.ts';
export { NftRules } from './nft-rules.ts';
export { hookedIn, isOwnTable } from './tables.ts';

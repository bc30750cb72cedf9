export { hookedIn } from './hooked-in.ts';
export { KernelRules } from './kernel-rules.ts';
export { NftRules } from './nft-rules.ts';
export type { BaseChainOf, Rules } from './surroundings.ts';

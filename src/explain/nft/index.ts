export { KernelRules } from './kernel-rules.ts';
export type { BaseChainOf, Hook, Host, Rules } from './surroundings.ts';
export type { ChainResult, Step } from './walk-chain.ts';
export { type End, type Origin, type Walk, walkAnswer, walkPacket } from './walk-packet.ts';

export type { Branch, Choice } from './choices.ts';
export { type Facts, type InSet, type IpSets, LegacyRules, type SetKey } from './iptables/index.ts';
export { KernelRules, NftRules, type Rules } from './nft/index.ts';
export { type FirstPacket, type Interface, KnownBytes, Packet } from './packet/index.ts';
export { type End, type Host, type Origin, type RuleSource, type Step, type Walk, walkPacket } from './walk/index.ts';

export type { Branch, Choice } from './choices.ts';
export {
  type Facts,
  type InSet,
  IpSetMembers,
  type IpSetReader,
  type IpSets,
  LegacyRules,
  type Saved,
  type SetKey,
} from './iptables/index.ts';
export { type IpvsReader, IpvsServers } from './ipvs/index.ts';
export { KernelRules, NftRules, type Rules } from './nft/index.ts';
export { type FirstPacket, type Interface, KnownBytes, Packet } from './packet/index.ts';
export { type End, type Host, type Origin, type RuleSource, type Step, type Walk, walkPacket } from './walk/index.ts';

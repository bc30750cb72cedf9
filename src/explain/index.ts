export * from './answer/index.ts';
export type { Branch, Choice } from './choices.ts';
export { type ExplainOptions, explain } from './explain.ts';
export {
  decodeMatch,
  decodeTarget,
  type Extension,
  type Facts,
  type InSet,
  IpSetMembers,
  type IpSetReader,
  type IpSets,
  KernelChains,
  LegacyRules,
  type Option,
  type ParsedRule,
  parseRule,
  type SetKey,
} from './iptables/index.ts';
export { type IpvsReader, IpvsServers } from './ipvs/index.ts';
export {
  KNOWLEDGE_SCHEMA,
  type Knowledge,
  type KnowledgeSources,
  type SeenByAgent,
  type SeenFlow,
  type TellingFamily,
  tellKnowledge,
} from './knowledge/index.ts';
export { KernelRules, NftRules, type Rules } from './nft/index.ts';
export { NodeView, otherNamespaces, readRules } from './node/index.ts';
export { type FirstPacket, type Interface, KnownBytes, Packet } from './packet/index.ts';
export { parseQuestion, type Question, QuestionError, type WrittenQuestion } from './question/index.ts';
export { type End, type Host, type Origin, type RuleSource, type Step, type Walk, walkPacket } from './walk/index.ts';

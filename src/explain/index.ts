export * from './answer/index.ts';
export type { Branch } from './choices.ts';
export { explain } from './explain.ts';
export {
  decodeMatch,
  decodeTarget,
  type Extension,
  IpSetMembers,
  KernelChains,
  LegacyRules,
  type Option,
  type ParsedRule,
  parseRule,
} from './iptables/index.ts';
export {
  KNOWLEDGE_SCHEMA,
  type Knowledge,
  type KnowledgeSources,
  type SeenByAgent,
  type SeenFlow,
  tellKnowledge,
} from './knowledge/index.ts';
export { KernelRules, NftRules } from './nft/index.ts';
export { attemptArguments, NodeView, otherNamespaces, readRules } from './node/index.ts';
export type { Interface } from './packet/index.ts';
export { parseQuestion, type Question, QuestionError, type WrittenQuestion } from './question/index.ts';
export { type Host, type Walk, walkPacket } from './walk/index.ts';

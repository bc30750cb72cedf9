export * from './answer/index.ts';
export type { Branch, Choice } from './choices.ts';
export { explain } from './explain.ts';
export {
  KNOWLEDGE_SCHEMA,
  type Knowledge,
  type KnowledgeSources,
  type TellingFamily,
  tellKnowledge,
} from './knowledge/index.ts';
export {
  type End,
  type Host,
  KernelRules,
  type Origin,
  type Rules,
  type Step,
  type Walk,
  walkPacket,
} from './nft/index.ts';
export { NodeView } from './node/index.ts';
export { type FirstPacket, type Interface, KnownBytes, Packet } from './packet/index.ts';
export { parseQuestion, type Question, QuestionError, type WrittenQuestion } from './question/index.ts';

export {
  type DestinationKind,
  KNOWLEDGE_SCHEMA,
  type Knowledge,
  type KnownDestination,
  type KnownEndpoint,
  type KnownFamily,
  type KnownNode,
  type KnownPod,
  type KnownPort,
  type KnownService,
  knownFamily,
} from './knowledge.ts';
export type { SeenByAgent, SeenChange, SeenFlow } from './seen.ts';
export { type KnowledgeSources, type TellingFamily, tellKnowledge } from './tell.ts';

export {
  type DestinationKind,
  type EndpointAddress,
  hasPod,
  KNOWLEDGE_SCHEMA,
  type Knowledge,
  type KnownEndpoint,
  type KnownNode,
  type KnownPort,
  type KnownService,
  knownFamily,
} from './knowledge.ts';
export type { SeenByAgent, SeenFlow } from './seen.ts';
export { type KnowledgeSources, tellKnowledge } from './tell.ts';

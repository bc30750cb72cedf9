export type { BlockOutcome, BlockRequest } from './block-request.ts';
export { type Decision, decide } from './decide.ts';
export { learn, sending } from './learn.ts';
export { type Memory, NO_MEMORY } from './memory.ts';
export type { BlockUse, PoolProblem, Situation, UsableBlock } from './situation.ts';

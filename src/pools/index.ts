export { blockName } from './block-name.ts';
export { BlockView, isConfirmed } from './block-view.ts';
export type { BlockUse, PoolProblem } from './decide/index.ts';
export { GivenBlocks } from './given-blocks.ts';
export { type Pool, type PoolConfig, parsePools } from './pool.ts';
export { type PoolHandler, PoolRunner, type PoolRunnerOptions } from './pool-runner.ts';
export type { PoolTimes } from './times.ts';

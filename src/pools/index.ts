export { blockName, NODE_HASH_LABEL, nodeHash } from './block-name.ts';
export { BlockView, isConfirmed } from './block-view.ts';
export type { BlockUse, PoolProblem } from './decide/index.ts';
export { GivenBlocks } from './given-blocks.ts';
export { addressesPerBlock, type Pool, type PoolConfig, parsePools } from './pool.ts';
export { POOL_RESOURCES, type PoolHandler, PoolRunner, type PoolRunnerOptions } from './pool-runner.ts';
export type { PoolTimes } from './times.ts';

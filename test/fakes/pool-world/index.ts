export { type PoolRun, PoolWorld } from './pool-world.ts';

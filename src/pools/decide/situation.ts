import type { ErrorCode } from '../../core/index.ts';
import type { BlockView } from '../block-view.ts';
import type { PoolTimes } from '../times.ts';

/** The addresses of a block on this node. */
export interface BlockUse {
  /** In use by pods. */
  readonly used: number;
  /** Could be given to pods. */
  readonly free: number;
}

/** What a decision is made from, besides the memory of earlier ones. */
export interface Situation {
  /** Milliseconds by a clock that never goes back. */
  readonly now: number;
  /** The name of this node. */
  readonly node: string;
  /** This process of the agent: random, and different from any other there ever was. */
  readonly session: string;
  /** What the store shows. */
  readonly view: BlockView;
  /** What this node uses of a range, whether it may or not. */
  readonly use: (cidr: string) => BlockUse;
  /** Whether a range is in the way of Services: new pods get no addresses of it. @default none is */
  readonly isOfServices?: ((cidr: string) => boolean) | undefined;
  readonly times: PoolTimes;
  /** A number from 0 to 1 (exclusive): spreads the work of all nodes over time. */
  readonly random: () => number;
}

/** A range that pods may get addresses from. */
export interface UsableBlock {
  readonly cidr: string;
  /** By the clock's `now`, unless something is heard before. */
  readonly until: number;
}

/** What people have to know. */
export interface PoolProblem {
  readonly code: ErrorCode;
  readonly message: string;
}

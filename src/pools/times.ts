/** How long what may take, in milliseconds by this node's clock. */
export interface PoolTimes {
  /** Blocks of a node that is gone are taken from it so long after it was seen to be gone, and did not renew them. */
  readonly reclaimMs: number;
  /**
   * No addresses are given out of a block when nothing was heard for so long of what keeps it ours. It is shorter than
   * `reclaimMs` by what clocks may gain on each other.
   */
  readonly fenceMs: number;
  /** How often this node looks whether its Node is still there, and renews its blocks while it is not. */
  readonly proofMs: number;
  /** A block that was claimed, or is to be deleted, and stays as it is for so long is finished by any node. */
  readonly unfinishedMs: number;
  /** A block is given back when it is empty, gets no more pods, and is still empty so much later. */
  readonly emptyMs: number;
  /** A range whose claim was refused, or done and not seen yet, is left alone for so long. */
  readonly claimMs: number;
  /** A write is seen in the view after so long at most, as a rule; only then is it tried again. */
  readonly settleMs: number;
  /** How often the node's use of addresses, and what other nodes have left, is looked at. */
  readonly tickMs: number;
}

/** @param reclaimMs the one that an administrator may want to be another: the same in all of the cluster. @default 15 min */
export function poolTimes(reclaimMs = 15 * 60_000): PoolTimes {
  const fenceMs = (reclaimMs * 2) / 3;
  return {
    reclaimMs,
    fenceMs,
    proofMs: fenceMs / 3,
    unfinishedMs: 2 * 60_000,
    emptyMs: 60_000,
    claimMs: 60_000,
    settleMs: 5_000,
    tickMs: 5_000,
  };
}

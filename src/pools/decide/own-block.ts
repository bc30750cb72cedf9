import type { PodCIDRBlock } from '../../kube/index.ts';
import { isConfirmed } from '../block-view.ts';
import { type BlockRequest, uidOf } from './block-request.ts';
import type { Memory } from './memory.ts';
import type { Situation } from './situation.ts';

/** What a block with this node's name is to this process. */
export interface OwnBlock {
  readonly block: PodCIDRBlock;
  readonly used: number;
  readonly free: number;
  /** Whether it is, or becomes, one to give addresses out of: not being given back, in one of the pools, in no Service's way. */
  readonly isInPool: boolean;
  /** Until when addresses may be given out of it, by the clock's `now`; undefined: none may. */
  readonly until: number | undefined;
  /** What brings it forward; undefined: nothing is to be done, or nothing can be. */
  readonly request: BlockRequest | undefined;
}

/**
 * Whether a block with this node's name is ours. One that was claimed for an earlier Node of the name is ours only if
 * this machine has addresses of it in use: that it is the same machine is then certain, and its pods are alive. Without any,
 * this may be another machine that got the name, and the former one may still run somewhere out of the server's sight; then
 * the block is as that of any node that is gone.
 */
export function isOurs({ spec }: PodCIDRBlock, { proof }: Memory, used: number): boolean {
  return (proof !== undefined && spec.nodeUID === proof.uid) || (isConfirmed(spec) && used > 0);
}

/** What there is to say about one block with this node's name; undefined: it is not ours. */
export function judgeOwn(block: PodCIDRBlock, s: Situation, memory: Memory): OwnBlock | undefined {
  const { used, free } = s.use(block.spec.cidr);
  const of = (more: Partial<Pick<OwnBlock, 'isInPool' | 'until' | 'request'>>): OwnBlock => {
    return { block, used, free, isInPool: false, until: undefined, request: undefined, ...more };
  };
  // Nobody uses such a block, whosever it was. One with pods is left to others: its range would be given away under them.
  if (block.spec.state === 'releasing') return of({ request: used === 0 ? { kind: 'remove', block } : undefined });
  if (!isOurs(block, memory, used)) return undefined;
  if (block.spec.state === 'pending') {
    // The view has the block itself, and therefore every block that was made before it: of two that overlap, at least one
    // sees the other. Who sees another gives way, both if need be.
    if (block.spec.nodeUID !== memory.looked?.uid) return of({});
    const kind = s.view.isAlone(block) && !s.isOfServices?.(block.spec.cidr) ? 'confirm' : 'remove';
    return of({ isInPool: true, request: { kind, block } });
  }
  if (memory.released.has(uidOf(block))) return of({ request: { kind: 'release', block } });
  const isInPool = s.view.isInPool(block) && !s.isOfServices?.(block.spec.cidr);
  const until = isInPool ? usableUntil(block, s, memory) : undefined;
  return of({ isInPool, until, request: renewal(block, s, memory) });
}

/**
 * A block may be used while something proves that nobody takes it from us: its Node was there a while ago, or we wrote
 * into the block a while ago. Others wait longer than that, from when they saw its Node gone and the block as it is.
 */
function usableUntil(block: PodCIDRBlock, s: Situation, { proof, renewed }: Memory): number | undefined {
  // Until the holder is this process, a write of an earlier one may be under way that gives the block back.
  if (block.spec.holder !== s.session) return undefined;
  const byNode = proof !== undefined && proof.uid === block.spec.nodeUID ? proof.at : Number.NEGATIVE_INFINITY;
  const provenAt = Math.max(byNode, renewed.get(uidOf(block)) ?? byNode);
  const until = provenAt + s.times.fenceMs;
  return until > s.now ? until : undefined;
}

function renewal(block: PodCIDRBlock, s: Situation, { looked, renewed }: Memory): BlockRequest | undefined {
  if (!looked) return undefined;
  const { nodeUID, holder } = block.spec;
  const isTaken = holder === s.session;
  const isForNode = looked.uid === undefined || looked.uid === nodeUID;
  // Without a Node nothing else tells others that we are alive.
  const isFresh =
    looked.uid !== undefined || s.now < (renewed.get(uidOf(block)) ?? Number.NEGATIVE_INFINITY) + s.times.proofMs;
  return isTaken && isForNode && isFresh ? undefined : { kind: 'renew', block, nodeUID: looked.uid };
}

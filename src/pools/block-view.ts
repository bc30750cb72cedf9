import { type Cidr, tryParseCidr } from '../core/index.ts';
import type { ObjectEvent, PodCIDRBlock } from '../kube/index.ts';
import type { Pool } from './pool.ts';
import { TakenBlocks } from './taken-blocks.ts';

/**
 * What the cluster's store shows: the blocks of all nodes, and which Nodes there are. The cost of an event does not depend
 * on how many of either there are.
 */
export class BlockView {
  readonly #node: string;
  readonly #pools: readonly TakenBlocks[];
  readonly #blocks = new Map<string, PodCIDRBlock>();
  /** The names of the blocks of each node that has some. */
  readonly #byNode = new Map<string, Set<string>>();
  /** The UIDs of the Nodes that there are, by name. */
  readonly #nodes = new Map<string, string>();
  /** The names of blocks that are not confirmed, or whose Node is not there. */
  readonly #suspicious = new Set<string>();
  /** What `own` returns; undefined: to be made anew. */
  #own: readonly PodCIDRBlock[] | undefined;

  /** @param node the name of this node */
  constructor(node: string, pools: readonly Pool[]) {
    this.#node = node;
    this.#pools = pools.map((pool) => new TakenBlocks(pool));
  }

  /** Takes an event of any kind in. Returns whether it is about this node: its Node, or a block of its own. */
  apply({ type, object }: ObjectEvent): boolean {
    if (object.kind === 'Node') {
      const { name, uid } = object.metadata;
      return this.#setNode(name, type === 'deleted' ? undefined : uid);
    }
    if (object.kind !== 'PodCIDRBlock') return false;
    const before = this.#blocks.get(object.metadata.name);
    if (type !== 'deleted' && before && isSameClaim(before, object)) this.#blocks.set(object.metadata.name, object);
    else {
      if (before) this.#remove(before);
      if (type !== 'deleted') this.#add(object);
    }
    if (type !== 'deleted') this.#judge(object);
    const isOwn = object.spec.node === this.#node || before?.spec.node === this.#node;
    if (isOwn) this.#own = undefined;
    return isOwn;
  }

  /** The UID of this node's Node; undefined: there is none. */
  get nodeUid(): string | undefined {
    return this.#nodes.get(this.#node);
  }

  /** How many nodes have blocks. */
  get owners(): number {
    return this.#byNode.size;
  }

  get pools(): readonly TakenBlocks[] {
    return this.#pools;
  }

  block(name: string): PodCIDRBlock | undefined {
    return this.#blocks.get(name);
  }

  /** The blocks that carry the name of this node, in any state, by name. */
  own(): readonly PodCIDRBlock[] {
    this.#own ??= [...(this.#byNode.get(this.#node) ?? [])].sort().map((name) => this.#blocks.get(name)!);
    return this.#own;
  }

  /** Blocks that are not confirmed, and those of nodes that are not there: of any node. */
  *suspicious(): Iterable<PodCIDRBlock> {
    for (const name of this.#suspicious) yield this.#blocks.get(name)!;
  }

  /** Whether a block's range is part of one of the pools. */
  isInPool({ spec }: PodCIDRBlock): boolean {
    const cidr = rangeOf(spec.cidr);
    return this.#pools.some((pool) => pool.covers(cidr));
  }

  /** The same, and no other block has an address of it. */
  isAlone({ spec }: PodCIDRBlock): boolean {
    const cidr = rangeOf(spec.cidr);
    return this.#pools.some((pool) => pool.isAlone(cidr));
  }

  #setNode(name: string, uid: string | undefined): boolean {
    if (uid === undefined) this.#nodes.delete(name);
    else this.#nodes.set(name, uid);
    for (const block of this.#byNode.get(name) ?? []) this.#judge(this.#blocks.get(block)!);
    return name === this.#node;
  }

  #add(block: PodCIDRBlock): void {
    const { metadata, spec } = block;
    this.#blocks.set(metadata.name, block);
    const ofNode = this.#byNode.get(spec.node);
    if (ofNode) ofNode.add(metadata.name);
    else this.#byNode.set(spec.node, new Set([metadata.name]));
    for (const pool of this.#pools) pool.take(rangeOf(spec.cidr));
  }

  #remove({ metadata: { name }, spec }: PodCIDRBlock): void {
    this.#blocks.delete(name);
    const ofNode = this.#byNode.get(spec.node)!;
    ofNode.delete(name);
    if (ofNode.size === 0) this.#byNode.delete(spec.node);
    for (const pool of this.#pools) pool.giveBack(rangeOf(spec.cidr));
    this.#suspicious.delete(name);
  }

  #judge({ metadata, spec }: PodCIDRBlock): void {
    const isWell = isConfirmed(spec) && this.#nodes.get(spec.node) === spec.nodeUID;
    if (isWell) this.#suspicious.delete(metadata.name);
    else this.#suspicious.add(metadata.name);
  }
}

/** Whether the block is its node's: for routes, any other block is not there. */
export function isConfirmed({ state = 'confirmed' }: PodCIDRBlock['spec']): boolean {
  return state === 'confirmed';
}

/** The same range for the same node: nothing that is counted has changed. */
function isSameClaim(a: PodCIDRBlock, b: PodCIDRBlock): boolean {
  return a.spec.node === b.spec.node && a.spec.cidr === b.spec.cidr;
}

/** The decoder of blocks has seen that it is one. */
function rangeOf(cidr: string): Cidr {
  return tryParseCidr(cidr)!;
}

import {
  type Cidr,
  cidrContains,
  compareText,
  formatCidr,
  parseCidr,
  spanOfCidr,
  spansOverlap,
} from '../../../core/index.ts';
import type { PodCIDRBlock } from '../../../kube/index.ts';
import type { BlockUse, Pool } from '../../../pools/index.ts';
import type { ClusterAddresses } from './read-cluster.ts';

/** Of addresses in use. */
export const NOT_WITHOUT_CNI =
  'without --cni it is not known where addresses of this node’s pods are reserved; give the flags that its agent has';

/** The pod addresses of a cluster as one node sees them; the form of `nodeplane ipam -o json`. */
export interface IpamReport {
  readonly node: string;
  readonly from: 'node' | 'pool';
  readonly pools: readonly {
    readonly cidr: string;
    readonly blockSize: number;
    readonly blocks: number;
    readonly free: number;
    /** How many nodes have blocks of it. */
    readonly nodes: number;
  }[];
  /** Of this node. */
  readonly ranges: readonly {
    readonly cidr: string;
    /**
     * A block's; `podCIDR` for one of the Node object, or of --cni-pod-cidrs; `closed` for one of before that pods have
     * addresses of, and new ones get none.
     */
    readonly state: string;
    /** Not there: it is not known where this node's addresses are reserved. */
    readonly used?: number;
    /** As above. Beyond 2^53 - 1 that number, which stands for any larger one: JSON has no exact ones. */
    readonly free?: number;
  }[];
  /** Blocks of all nodes. */
  readonly blocks: readonly { readonly cidr: string; readonly node: string; readonly state: string }[];
}

export interface IpamReportInput extends Pick<ClusterAddresses, 'node' | 'blocks'> {
  readonly nodeName: string;
  /** Undefined: nodes do not share pools. */
  readonly pools: readonly Pool[] | undefined;
  /** Of this node where it has no blocks. */
  readonly podCidrs: readonly Cidr[];
  /** Ranges that pods of this node were made with, as far as their notes tell. */
  readonly living: readonly Cidr[];
  /** The addresses of a range that pods of this node have, and could get; undefined: it is not known. */
  readonly use: ((range: Cidr) => BlockUse) | undefined;
}

/** Puts together what `nodeplane ipam` shows. Pure. */
export function ipamReport({ nodeName, pools, podCidrs, blocks, living, use }: IpamReportInput): IpamReport {
  const sorted = [...blocks].sort(
    (a, b) => compareText(a.spec.node, b.spec.node) || compareText(a.spec.cidr, b.spec.cidr),
  );
  const own = sorted.filter(({ spec }) => spec.node === nodeName);
  const rangeOf = (state: string) => (range: Cidr) => {
    const cidr = formatCidr(range);
    if (!use) return { cidr, state };
    const { used, free } = use(range);
    return { cidr, state, used, free: state === 'closed' ? 0 : Math.min(free, Number.MAX_SAFE_INTEGER) };
  };
  const ranges = pools
    ? own.map(({ spec }) => ({ cidr: spec.cidr, state: stateOf(spec), ...use?.(parseCidr(spec.cidr)) }))
    : [...podCidrs.map(rangeOf('podCIDR')), ...formerOf(living, podCidrs).map(rangeOf('closed'))];
  return {
    node: nodeName,
    from: pools ? 'pool' : 'node',
    pools: (pools ?? []).map((pool) => poolOf(pool, sorted)),
    ranges,
    blocks: sorted.map(({ spec }) => ({ cidr: spec.cidr, node: spec.node, state: stateOf(spec) })),
  };
}

/** As the agent tells them from the present ones. */
function formerOf(living: readonly Cidr[], present: readonly Cidr[]): readonly Cidr[] {
  return living.filter((range) => !present.some((other) => cidrContains(other, range.address)));
}

function poolOf(pool: Pool, blocks: readonly PodCIDRBlock[]): IpamReport['pools'][number] {
  const { name, blockSize, blockCount, span } = pool;
  const taken = blocks.filter(({ spec }) => spansOverlap(spanOfCidr(parseCidr(spec.cidr)), span));
  return {
    cidr: name,
    blockSize,
    blocks: blockCount,
    free: freeBlocks(pool, taken),
    nodes: new Set(taken.map(({ spec }) => spec.node)).size,
  };
}

/** Blocks of an earlier size may be several of the present one, or a part of one. */
function freeBlocks({ blockCount, blockSize, span }: Pool, taken: readonly PodCIDRBlock[]): number {
  const touched = new Set<bigint>();
  const bits = span.family === 'IPv4' ? 32 : 128;
  const size = 2n ** BigInt(bits - blockSize);
  for (const { spec } of taken) {
    const { first, last } = spanOfCidr(parseCidr(spec.cidr));
    const from = first > span.first ? first : span.first;
    const to = last < span.last ? last : span.last;
    for (let at = from - ((from - span.first) % size); at <= to; at += size) touched.add(at);
  }
  return blockCount - touched.size;
}

/** `confirmed` when a manifest says nothing. */
function stateOf({ state = 'confirmed' }: PodCIDRBlock['spec']): string {
  return state;
}

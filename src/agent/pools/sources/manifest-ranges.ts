import { type Cidr, formatCidr } from '../../../core/index.ts';
import { type Node, type ObjectEvent, POD_CIDR_BLOCKS } from '../../../kube/index.ts';
import { GivenBlocks, type Pool } from '../../../pools/index.ts';
import type { OwnRanges, RangeSource } from '../pod-ranges.ts';
import { setsOfPools } from './sets-of-pools.ts';

/** The ranges of nodes are those of blocks in manifests: nobody claims any, and a node uses what is confirmed for it. */
export class ManifestRanges implements RangeSource {
  readonly resources = [POD_CIDR_BLOCKS];
  readonly complete: Promise<void>;
  readonly #nodeName: string;
  readonly #pools: readonly Pool[];
  readonly #given = new GivenBlocks();
  readonly #had = new Set<string>();
  #resolve: () => void = () => {};

  constructor(nodeName: string, pools: readonly Pool[]) {
    this.#nodeName = nodeName;
    this.#pools = pools;
    this.complete = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  own(): OwnRanges {
    const given = this.#given.of(this.#nodeName);
    const why = (family: string) =>
      `no PodCIDRBlock in the manifests gives node "${this.#nodeName}" a range of ${family}`;
    return setsOfPools(this.#pools, given, given, why);
  }

  ofNode({ metadata }: Node): readonly string[] {
    return this.#given.of(metadata.name);
  }

  event(event: ObjectEvent): readonly string[] {
    const nodes = this.#given.apply(event);
    for (const cidr of this.#given.of(this.#nodeName)) this.#had.add(cidr);
    return nodes;
  }

  synced(): void {
    this.#resolve();
  }

  async start(): Promise<void> {}

  async stop(): Promise<void> {}

  useChanged(): void {}

  isGone(range: Cidr): boolean {
    const text = formatCidr(range);
    return this.#had.has(text) && !this.#given.of(this.#nodeName).includes(text);
  }
}

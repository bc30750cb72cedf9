import type { PoolsConfig } from '../../../config/index.ts';
import { type Cidr, type Clock, cidrContains, formatCidr, parseCidr } from '../../../core/index.ts';
import {
  type ApiClient,
  type ApiObserver,
  ApiSource,
  NODES,
  type Node,
  type ObjectEvent,
  POD_CIDR_BLOCKS,
  type SourceProblem,
} from '../../../kube/index.ts';
import {
  type BlockUse,
  GivenBlocks,
  type Pool,
  type PoolProblem,
  PoolRunner,
  parsePools,
} from '../../../pools/index.ts';
import type { OwnRanges, RangeSource } from '../pod-ranges.ts';
import { setsOfPools } from './sets-of-pools.ts';

export interface PoolRangesOptions {
  readonly config: PoolsConfig;
  readonly nodeName: string;
  /** Stays the caller's. */
  readonly client: ApiClient;
  readonly clock: Clock;
  /** The addresses of a range that pods have, and could get. */
  readonly use: (range: Cidr) => BlockUse;
  /** Whether a range overlaps those of Services; what it answers may change: `useChanged`. */
  readonly isOfServices: (range: Cidr) => boolean;
  /** Told all that is wrong with our blocks, whenever that changes. */
  readonly problems: (problems: readonly PoolProblem[]) => void;
  /** Told all objects that cannot be read, whenever that changes. */
  readonly unreadable: (problems: readonly SourceProblem[]) => void;
  /** Told of lists and watches. */
  readonly observe: ApiObserver;
}

/**
 * The ranges of nodes are blocks of the cluster's pools, which the nodes share among themselves in the API server's store.
 *
 * The blocks come from a source of their own: while the API server does not know their kind, or does not let us read it, pods
 * get no addresses and routes stay as they are, but Services go on.
 */
export class PoolRanges implements RangeSource {
  readonly resources = [{ ...NODES, essential: true }];
  readonly complete: Promise<void>;
  readonly #options: PoolRangesOptions;
  readonly #pools: readonly Pool[];
  readonly #given = new GivenBlocks();
  readonly #runner: PoolRunner;
  readonly #blocks: ApiSource;
  #changed: (nodes: readonly string[]) => void = () => {};
  #resolve: () => void = () => {};
  #problems: readonly PoolProblem[] = [];
  #isSynced = false;
  #areBlocksSynced = false;

  /** @throws ERR_CONFIG for pools that cannot be used */
  constructor(options: PoolRangesOptions) {
    const { config, nodeName: node, client, clock, use, isOfServices, observe } = options;
    this.#options = options;
    this.#pools = poolsOf(config);
    this.#runner = new PoolRunner({
      client,
      node,
      pools: this.#pools,
      use: (cidr) => use(parseCidr(cidr)),
      isOfServices: (cidr) => isOfServices(parseCidr(cidr)),
      reclaimMs: config.reclaimMs,
      clock,
    });
    this.#blocks = new ApiSource({ client, resources: [POD_CIDR_BLOCKS], clock, observe });
    this.complete = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  own(): OwnRanges {
    const { nodeName } = this.#options;
    const said = this.#problems.map(({ message }) => message).join('; ');
    const why = (family: string) => said || `no ${family} block of pod addresses is that of node "${nodeName}" yet`;
    return setsOfPools(this.#pools, this.#runner.blocks(), this.#given.of(nodeName), why);
  }

  ofNode({ metadata }: Node): readonly string[] {
    return this.#given.of(metadata.name);
  }

  event(event: ObjectEvent): readonly string[] {
    if (event.object.kind === 'Node') this.#runner.event(event);
    return [];
  }

  synced(): void {
    this.#isSynced = true;
    this.#synced();
  }

  async start(changed: (nodes: readonly string[]) => void): Promise<void> {
    const { nodeName, problems, unreadable } = this.#options;
    this.#changed = changed;
    this.#runner.start({
      changed: () => changed([nodeName]),
      problems: (all) => {
        this.#problems = all;
        problems(all);
        changed([nodeName]);
      },
    });
    await this.#blocks.start({
      event: (event) => this.#blockChanged(event),
      synced: () => {
        this.#areBlocksSynced = true;
        this.#synced();
      },
      problems: unreadable,
    });
  }

  async stop(): Promise<void> {
    this.#changed = () => {};
    await this.#blocks.stop();
    await this.#runner.stop();
  }

  useChanged(): void {
    this.#runner.useChanged();
  }

  /** Also what an agent before us had: a block of a pool that is not ours, and that no pod has an address of. */
  isGone(range: Cidr): boolean {
    if (!this.#areBlocksSynced || this.#given.of(this.#options.nodeName).includes(formatCidr(range))) return false;
    const isBlock = this.#pools.some(
      ({ name, blockSize }) => range.prefixLength === blockSize && cidrContains(parseCidr(name), range.address),
    );
    return isBlock && this.#options.use(range).used === 0;
  }

  #blockChanged(event: ObjectEvent): void {
    this.#runner.event(event);
    const nodes = this.#given.apply(event);
    if (nodes.length > 0) this.#changed(nodes);
  }

  #synced(): void {
    if (!this.#isSynced || !this.#areBlocksSynced) return;
    this.#runner.synced();
    this.#resolve();
  }
}

/** @throws ERR_CONFIG */
export function poolsOf({ cidrs, blockSizes }: PoolsConfig): readonly Pool[] {
  return parsePools(cidrs.map((cidr) => ({ cidr: formatCidr(cidr), blockSize: blockSizes[cidr.address.family] })));
}

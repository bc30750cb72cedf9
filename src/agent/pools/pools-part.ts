import { type Cidr, formatCidr, inBackground, type Timer } from '../../core/index.ts';
import { type ApiObserver, type Node, type ObjectEvent, type Resource, SERVICE_CIDRS } from '../../kube/index.ts';
import { configuredConflist, dataDirsOf, usesNodeRanges } from '../cni/install/configured.ts';
import { logSourceProblems } from '../metrics/observe.ts';
import type { Part, PartContext } from '../part.ts';
import type { AddressFacts } from '../status/collect/facts.ts';
import { AddressUse } from './address-use.ts';
import { fullRanges } from './full-ranges.ts';
import { livingRanges } from './living-ranges.ts';
import { logPoolProblems, rangeMetrics } from './observe.ts';
import type { OwnRanges, PodRanges, RangeSource } from './pod-ranges.ts';
import { removeGateways } from './remove-gateways.ts';
import { ServiceRanges } from './service-ranges.ts';
import { ManifestRanges } from './sources/manifest-ranges.ts';
import { NodeRanges } from './sources/node-ranges.ts';
import { PoolRanges, poolsOf } from './sources/pool-ranges.ts';

/** Addresses of many pods that come and go together are looked at together. */
const TOGETHER_MS = 100;
/** What was given back without a request is seen after so long. */
const LOOK_MS = 5000;

/** Knows which ranges of pod addresses the nodes have, and keeps those of this one. The parts for pods and routes ask it. */
export class PoolsPart implements Part, PodRanges {
  readonly resources: readonly Resource[];
  readonly #context: PartContext;
  readonly #use: AddressUse;
  readonly #source: RangeSource;
  readonly #services = new ServiceRanges();
  readonly #listeners: ((node: string) => void)[] = [];
  /** Whether the agent gives the pods of this node their network, of these ranges. */
  readonly #hasPods: boolean;
  #told = '';
  /** What comes before is a part of what there is. */
  #isComplete = false;
  #timer: Timer | undefined;
  #soon: Timer | undefined;

  /**
   * @param observe told of lists and watches of the API server
   * @throws ERR_CONFIG for pools that cannot be used
   */
  constructor(context: PartContext, observe: ApiObserver) {
    const { config, registry, clock, logger } = context;
    this.#context = context;
    const { cni } = config;
    const conflist = cni && configuredConflist(cni);
    const dataDirs = cni && conflist ? dataDirsOf(cni, conflist) : [];
    const failed = (error: unknown) => logger.error({ err: error }, 'The addresses of pods cannot be looked at');
    this.#use = new AddressUse({ dataDirs, clock, failed });
    const network = conflist && usesNodeRanges(conflist) ? conflist.network : undefined;
    this.#hasPods = network !== undefined;
    let found: readonly Cidr[] = [];
    const living = () => {
      try {
        if (network !== undefined) found = livingRanges(dataDirs, network);
      } catch (error) {
        // What was found last stays in force.
        failed(error);
      }
      return found;
    };
    const isOfServices = (range: Cidr) => this.#services.overlap(range);
    this.#source = sourceOf(context, { use: this.#use, isOfServices, living, observe });
    this.resources = [...this.#source.resources, SERVICE_CIDRS];
    // They are the operator's word, and hold while the API server is away.
    if (cni && cni.podCidrs.length > 0) this.#services.complete();
    rangeMetrics(
      registry,
      () => this.own(),
      (range) => this.#use.of(range),
    );
  }

  /** The ranges of this node's pods and what is left of them, for people. */
  addresses(): AddressFacts {
    const { sets, held, lacking } = this.own();
    const open = new Set(sets.flat().map(formatCidr));
    const ranges = held.map((range) => {
      const cidr = formatCidr(range);
      return { cidr, state: open.has(cidr) ? ('open' as const) : ('closed' as const), ...this.#use.of(range) };
    });
    if (!this.#hasPods || !this.#isComplete) return { ranges, lacking: '' };
    return { ranges, lacking: lacking || fullRanges(sets, (range) => this.#use.of(range)) };
  }

  get complete(): Promise<void> {
    return this.#source.complete;
  }

  own(): OwnRanges {
    return this.#services.without(this.#source.own());
  }

  ofNode(node: Node): readonly string[] | undefined {
    return this.#source.ofNode(node);
  }

  listen(listener: (node: string) => void): void {
    this.#listeners.push(listener);
  }

  addressesChanged(): void {
    this.#soon ??= this.#context.clock.setTimer(() => {
      this.#soon = undefined;
      this.#use.forget();
      this.#source.useChanged();
    }, TOGETHER_MS);
  }

  async start(): Promise<void> {
    inBackground('ranges', async () => {
      await this.#source.complete;
      this.#isComplete = true;
      this.#ownChanged();
    });
    await this.#source.start((nodes) => this.#tell(nodes));
    this.#look();
  }

  changed(event: ObjectEvent): void {
    this.#tell(this.#source.event(event));
    if (!this.#services.apply(event)) return;
    this.#source.useChanged();
    this.#tell([this.#context.config.nodeName]);
  }

  synced(): void {
    this.#services.complete();
    this.#source.synced();
    this.#tell([this.#context.config.nodeName]);
  }

  async stop(): Promise<void> {
    this.#timer?.cancel();
    this.#soon?.cancel();
    await this.#source.stop();
  }

  #look(): void {
    this.#timer = this.#context.clock.setTimer(() => this.#look(), LOOK_MS);
    this.#source.useChanged();
  }

  #tell(nodes: readonly string[]): void {
    if (nodes.includes(this.#context.config.nodeName)) this.#ownChanged();
    for (const node of nodes) for (const listener of this.#listeners) inBackground('ranges', () => listener(node));
  }

  /** Logs what is new, and clears away what is no more. */
  #ownChanged(): void {
    if (!this.#isComplete) return;
    const { logger } = this.#context;
    const { sets, lacking, held } = this.own();
    const open = sets.flat().map(formatCidr);
    const closed = held.map(formatCidr).filter((text) => !open.includes(text));
    const said = JSON.stringify([open, closed, lacking]);
    if (said === this.#told) return;
    this.#told = said;
    if (lacking === '') logger.info({ ranges: open, ...(closed.length > 0 && { closed }) }, 'Ranges of new pods');
    else logger.info({ reason: lacking, closed }, 'New pods get no addresses yet');
    // The gateways of somebody else's pods are somebody else's.
    if (!this.#hasPods) return;
    inBackground('gateways of former ranges', () => {
      const removed = removeGateways((range: Cidr) => this.#source.isGone(range));
      if (removed.length > 0) logger.info({ addresses: removed }, 'Gateways of ranges that are given back are removed');
    });
  }
}

interface Surroundings {
  readonly use: AddressUse;
  readonly isOfServices: (range: Cidr) => boolean;
  readonly living: () => readonly Cidr[];
  readonly observe: ApiObserver;
}

function sourceOf(
  { config, client, clock, logger }: PartContext,
  { use, isOfServices, living, observe }: Surroundings,
): RangeSource {
  const { nodeName, pools, cni } = config;
  if (!pools)
    return new NodeRanges({ nodeName, fixed: cni?.podCidrs ?? [], living, used: (range) => use.of(range).used });
  if (!client) return new ManifestRanges(nodeName, poolsOf(pools));
  return new PoolRanges({
    config: pools,
    nodeName,
    client,
    clock,
    use: (range) => use.of(range),
    isOfServices,
    problems: logPoolProblems(logger),
    unreadable: logSourceProblems(logger),
    observe,
  });
}

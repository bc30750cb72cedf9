import {
  type Cidr,
  type Clock,
  type Drift,
  type IpAddress,
  inSlices,
  nothingToCompare,
  Pace,
  type PaceOptions,
  type Steps,
  SyncRunner,
  type Timer,
} from '../../core/index.ts';
import type { Node } from '../../kube/index.ts';
import { type Peer, readPeer, samePeer, sameRanges } from '../plan/peer.ts';
import { RoutePlanner } from '../plan/planner.ts';
import type { OwnEnd, RouteHappening, RouteObserver } from './events.ts';
import { type GroundOptions, Grounds, mtuOf } from './grounds.ts';
import { type Ground, KernelRoutes } from './kernel-routes.ts';
import { type DatedStanding, RouteTally } from './tally.ts';
import { CHECK_MS, FULL_MS, RETRY } from './timing.ts';

export interface FamilyRoutesOptions extends GroundOptions {
  /** The Node object of this machine. */
  readonly nodeName: string;
  /** The node's address, in place of the InternalIP of its Node object. */
  readonly address?: IpAddress | undefined;
  /** The ranges of this node's pods, in place of those of its Node object. @default those */
  readonly podRanges?: readonly Cidr[] | undefined;
  readonly clock: Clock;
  readonly observe: RouteObserver;
}

/** Events within this time after a sync are dealt with together: a Node is to be reached within 200 ms. */
const MIN_INTERVAL_MS = 50;
/** Somebody who changes our routes all the time does not make us compare them all more often than this. */
const REPAIRS: PaceOptions = { atOnce: 1, eachMs: 1000 };
/** Nodes between two looks at the clock, which takes as long as counting one. */
const STEP = 16;

/**
 * The routes to other nodes' pods in one family: Nodes in, kernel objects out. Everything is compared with the kernel at the
 * start, when others change something, and after a failure; in between, an event costs what it changes.
 */
export class FamilyRoutes {
  readonly #options: FamilyRoutesOptions;
  readonly #planner: RoutePlanner;
  readonly #kernel: KernelRoutes;
  readonly #grounds: Grounds;
  readonly #runner: SyncRunner;
  readonly #tally: RouteTally;
  /** What the Node object of this machine says. It stays in force while there is none: pods go on living. */
  #own: Peer | undefined;
  #ownProblem: string | undefined;
  #isUnused = false;
  #serviceRanges: readonly Cidr[] = [];
  #touched = new Set<string>();
  #ground: Ground | undefined;
  /** Of the ground last found; it outlives failures. */
  #mtu: number | undefined;
  #toldWaiting: string | undefined;
  #watch: { close(): void } | undefined;
  readonly #pace = new Pace(REPAIRS);
  #repairTimer: Timer | undefined;

  constructor(options: FamilyRoutesOptions) {
    const { family, nodeName, settings, kernel, clock } = options;
    this.#options = options;
    this.#planner = new RoutePlanner(family, nodeName, settings);
    this.#grounds = new Grounds(options);
    this.#kernel = new KernelRoutes(kernel, clock, () => this.#runner.requestFull());
    this.#tally = new RouteTally(clock.wallTime.bind(clock), (name, reason) =>
      this.#tell({ kind: 'leftOut', name, reason }),
    );
    this.#runner = new SyncRunner({
      name: `routes ${family}`,
      clock,
      minIntervalMs: MIN_INTERVAL_MS,
      maxIntervalMs: FULL_MS,
      retry: RETRY,
      run: (full) => this.#sync(full),
      failed: (error, _full, retryInMs) => this.#tell({ kind: 'syncFailed', error, retryInMs }),
      check: {
        intervalMs: CHECK_MS,
        run: () => this.#check(),
        failed: (error) => this.#tell({ kind: 'verifyFailed', error }),
      },
    });
  }

  /** A Node came or changed, this one or another. */
  nodeChanged(node: Node): void {
    if (node.metadata.name === this.#options.nodeName) this.#ownChanged(node);
    else this.#touch(this.#planner.nodeChanged(node));
  }

  /** A Node went. */
  nodeRemoved(name: string): void {
    this.#touch(this.#planner.nodeRemoved(name));
  }

  /** The ranges of ClusterIPs, of both families. */
  serviceRangesChanged(ranges: readonly Cidr[]): void {
    const ofFamily = ranges.filter(({ address }) => address.family === this.#options.family);
    if (sameRanges(ofFamily, this.#serviceRanges)) return;
    this.#serviceRanges = ofFamily;
    this.#runner.requestFull();
  }

  /** All Nodes that exist were told. Begins to write. Throws ERR_NETLINK_SOCKET. */
  start(): void {
    this.#watch = this.#options.kernel.watch(() => this.#disturbed());
    this.#runner.start();
  }

  /** Ends the work; the routes stay in the kernel. */
  async stop(): Promise<void> {
    this.#watch?.close();
    this.#repairTimer?.cancel();
    this.#kernel.hurry();
    await this.#runner.stop();
  }

  /** This node's Node says that it has no pods of the family: there is nothing to write, nor to compare. */
  get isUnused(): boolean {
    return this.#isUnused;
  }

  /** In what the kernel differs from what was written; between syncs. Rejects with KernelError, ERR_ROUTES. */
  async verify(): Promise<Drift[]> {
    if (!this.#ground) return [];
    const moved = await this.#grounds.drifts(this.#ground);
    return [...moved, ...(await this.#kernel.drifts(this.#ground))];
  }

  /** As `verify`, between the syncs. Rejects with ERR_DIFF too, when there is nothing to compare with. */
  compare(): Promise<Drift[]> {
    return this.#runner.between(async () => {
      if (!this.#ground)
        throw nothingToCompare(`routes ${this.#options.family}`, this.#toldWaiting ?? 'they are not written');
      return this.verify();
    });
  }

  /** Makes the kernel what it is to be; resolves when it is. Rejects with what makes the sync fail. */
  repair(): Promise<void> {
    return this.#runner.runFull();
  }

  /** By name, how it stands with each other Node that has pods. To be read only. */
  standings(): ReadonlyMap<string, DatedStanding> {
    return this.#tally.standings();
  }

  /**
   * The largest packet that gets to all other nodes' pods: through the tunnel where there is one. Undefined while this node's own
   * Node, or the network between the nodes, is not known.
   */
  mtu(): number | undefined {
    if (this.#mtu !== undefined || !this.#own) return this.#mtu;
    try {
      return this.#grounds.mtu(this.#own);
    } catch {
      // The sync says why.
      return undefined;
    }
  }

  #ownChanged(node: Node): void {
    const { family, settings, podRanges = [], address } = this.#options;
    const instead = {
      ranges: podRanges.filter((range) => range.address.family === family),
      address: address?.family === family ? address : undefined,
    };
    const reading = readPeer(node, family, settings.vni, instead);
    this.#isUnused = !reading && !this.#own;
    if (!reading || 'problem' in reading) {
      this.#ownProblem = reading
        ? `this node cannot be used: ${reading.problem}`
        : `this node has no pod CIDR of ${family}`;
      if (!this.#own) this.#runner.request();
      return;
    }
    if (this.#own && samePeer(this.#own, reading.peer)) return;
    this.#own = reading.peer;
    this.#options.wireguard?.joins(family);
    this.#runner.requestFull();
  }

  #touch(names: readonly string[]): void {
    // What is told before the start is all dealt with at the start.
    if (names.length === 0 || !this.#watch) return;
    for (const name of names) this.#touched.add(name);
    this.#runner.request();
  }

  async #sync(full: boolean): Promise<void> {
    const { clock } = this.#options;
    if (!this.#own) {
      this.#tellWaiting();
      return;
    }
    this.#toldWaiting = undefined;
    const began = clock.now();
    const touched = this.#touched;
    this.#touched = new Set();
    const isFull = full || !this.#ground;
    const operations = isFull ? await this.#syncAll(this.#own) : await this.#syncSome(touched);
    // What is in the way may go without a word.
    if (this.#kernel.refused > 0) this.#runner.requestRetry();
    const seconds = (clock.now() - began) / 1000;
    const own = ownEndOf(this.#ground!);
    this.#tell({ kind: 'synced', full: isFull, seconds, operations, figures: this.#tally.figures(), own });
  }

  async #syncAll(own: Peer): Promise<number> {
    const { family, wireguard } = this.#options;
    this.#ground = undefined;
    const ground = await this.#grounds.of(own, this.#serviceRanges);
    this.#noteMtu(mtuOf(ground));
    this.#planner.setOwn(ground.own);
    // In one go: plans of different times could want the same.
    const plans = this.#planner.plans();
    const operations = await this.#kernel.reconcile(ground, plans);
    this.#ground = ground;
    if (this.#kernel.tunnel !== undefined) wireguard?.replaced(family, this.#kernel.tunnel, plans);
    this.#tally.forgetOthers((name) => this.#planner.knows(name));
    await inSlices(this.#countAll());
    return operations;
  }

  async #syncSome(names: ReadonlySet<string>): Promise<number> {
    const changes = new Map([...names].map((name) => [name, this.#planner.planOf(name)]));
    this.#options.wireguard?.changed(this.#options.family, changes);
    const operations = await this.#kernel.update(changes);
    for (const name of names) this.#count(name);
    return operations;
  }

  *#countAll(): Steps<void> {
    let counted = 0;
    for (const name of this.#planner.names()) {
      this.#count(name);
      if (++counted % STEP === 0) yield;
    }
  }

  #count(name: string): void {
    const plan = this.#kernel.committed(name);
    const refusal = this.#kernel.refusalOf(name);
    const reason = plan && refusal === undefined ? undefined : (this.#planner.objectionTo(name) ?? refusal);
    this.#tally.set(name, { plan, reason, isRefused: refusal !== undefined });
  }

  #noteMtu(mtu: number): void {
    if (mtu === this.#mtu) return;
    this.#mtu = mtu;
    this.#tell({ kind: 'mtuKnown', mtu });
  }

  async #check(): Promise<void> {
    const drifts = await this.verify();
    if (drifts.length === 0) return;
    this.#tell({ kind: 'driftFound', drifts });
    this.#runner.requestFull();
  }

  #disturbed(): void {
    if (this.#repairTimer) return;
    const { clock } = this.#options;
    this.#repairTimer = clock.setTimer(() => {
      this.#repairTimer = undefined;
      this.#pace.passed(clock.now());
      this.#tell({ kind: 'disturbed' });
      this.#runner.requestFull();
    }, this.#pace.leftMs(clock.now()));
  }

  #tellWaiting(): void {
    const { nodeName } = this.#options;
    const reason = this.#ownProblem ?? `there is no Node object "${nodeName}" yet`;
    if (reason !== this.#toldWaiting) this.#tell({ kind: 'waiting', reason });
    this.#toldWaiting = reason;
  }

  #tell(happening: RouteHappening): void {
    this.#options.observe({ family: this.#options.family, ...happening });
  }
}

function ownEndOf(ground: Ground): OwnEnd {
  const { underlay, mac, ranges } = ground.own;
  return { address: underlay.address, mac, ranges, mtu: mtuOf(ground) };
}

import {
  type Cidr,
  type Clock,
  type Drift,
  IP_FAMILIES,
  inSlices,
  nothingToCompare,
  SyncRunner,
  type Timer,
} from '../../core/index.ts';
import { type Node, podRangesOf } from '../../kube/index.ts';
import type { NftRuleset } from '../../netlink/nftables/index.ts';
import { changesDrift, trialOf } from '../../nft/drift/index.ts';
import { ForeignWatch, type TableLayout, type WatchNftables } from '../../nft/index.ts';
import { RETRY } from '../sync/timing.ts';
import { type Element, fixedElements, partsOf } from './elements.ts';
import type { RuleObserver } from './events.ts';
import { rulesLayout } from './layout.ts';
import { nodeAddresses, ownElements, peerElements, unenforceable } from './node-elements.ts';
import { RefusalReader } from './refusals.ts';
import { type RuleCommit, reconcileRules, removeRules, updateRules } from './rules-kernel.ts';
import type { RuleSettings } from './settings.ts';
import { RULES_TABLE } from './table.ts';
import { WantedElements } from './wanted-elements.ts';

export interface RouteRulesOptions {
  /** The Node object of this machine. */
  readonly nodeName: string;
  readonly settings: RuleSettings;
  /** The ranges of this node's pods, in place of those of its Node object. @default those */
  readonly podRanges?: readonly Cidr[] | undefined;
  /** Opens nf_tables, at the first sync. */
  readonly open: () => NftRuleset;
  readonly watch: WatchNftables;
  readonly clock: Clock;
  readonly observe: RuleObserver;
}

/** Events within this time after a sync are dealt with together. */
const MIN_INTERVAL_MS = 50;
/** Time between two comparisons of everything, besides those that a change by others leads to. */
const FULL_MS = 600_000;
/** A reload of a firewall is several transactions. */
const DEBOUNCE_MS = 50;
/** How often the counters of what was refused are read. */
const LOOK_MS = 10_000;

/**
 * The rules beside the routes, of both families: who may use the tunnel, and what is masqueraded. Nodes in, one nf_tables table
 * out. It is compared with the kernel at the start, when others change it, and after a failure; in between, an event costs what
 * it changes.
 */
export class RouteRules {
  readonly #options: RouteRulesOptions;
  readonly #wanted = new WantedElements();
  readonly #runner: SyncRunner;
  readonly #watch: ForeignWatch;
  readonly #refusals = new RefusalReader();
  #ruleset: NftRuleset | undefined;
  /** As committed; undefined: nothing is known about the kernel, or nothing is to be there. */
  #layout: TableLayout | undefined;
  /** Of the table as it was last made. One that has become empty stays: nothing is made anew for that. */
  #setNames: readonly string[] = [];
  #hasSynced = false;
  /** Of the elements that are wanted, those that are not written all the same. */
  #withheld: ReadonlySet<Element> = new Set();
  #looking: Timer | undefined;

  constructor(options: RouteRulesOptions) {
    const { settings, podRanges = [], clock, observe, watch } = options;
    this.#options = options;
    const { sources = [], exempt = [] } = settings.masquerade ?? {};
    if (settings.masquerade) this.#wanted.set(SETTINGS, fixedElements(sources, exempt));
    this.#wanted.set(OWN, ownElements(podRanges, settings));
    this.#runner = new SyncRunner({
      name: 'the rules beside the routes',
      clock,
      minIntervalMs: MIN_INTERVAL_MS,
      maxIntervalMs: FULL_MS,
      retry: RETRY,
      run: (full) => this.#sync(full),
      failed: (error, _full, retryInMs) => observe({ kind: 'syncFailed', error, retryInMs }),
    });
    this.#watch = new ForeignWatch({
      watch,
      tables: [RULES_TABLE],
      clock,
      debounceMs: DEBOUNCE_MS,
      generation: () => this.#open().generation(),
      changed: () => this.#disturbed(),
    });
  }

  /** A Node came or changed, this one or another. */
  nodeChanged(node: Node): void {
    const { settings, nodeName } = this.#options;
    const { name } = node.metadata;
    if (name === nodeName) this.#ownChanged(node);
    else this.#want(`${NODE}${name}`, peerElements(node, settings));
  }

  /** A Node went. Of this one the last word counts: pods go on living. */
  nodeRemoved(name: string): void {
    if (name !== this.#options.nodeName) this.#want(`${NODE}${name}`, []);
  }

  /** All Nodes that exist were told. Begins to write. */
  start(): void {
    this.#runner.start();
  }

  /** In what the table differs from what it is to be; nothing is changed. Rejects with KernelError, ERR_DIFF. */
  compare(): Promise<Drift[]> {
    return this.#runner.between(async () => {
      if (!this.#hasSynced) throw nothingToCompare('the rules beside the routes', 'they are not written');
      const ruleset = this.#open();
      const trial = trialOf(ruleset);
      await this.#makeEqual(trial.ruleset, this.#written(this.#wanted.all()), this.#setNames);
      return inSlices(changesDrift(ruleset, trial.changes));
    });
  }

  /** Makes the table what it is to be; resolves when it is. Rejects with what makes the sync fail. */
  repair(): Promise<void> {
    return this.#runner.runFull();
  }

  /** Ends the work; the table stays in the kernel. */
  async stop(): Promise<void> {
    await this.#runner.stop();
    this.#looking?.cancel();
    this.#watch.close();
    this.#ruleset?.close();
    this.#ruleset = undefined;
  }

  #ownChanged(node: Node): void {
    const { settings, podRanges = [] } = this.#options;
    if (settings.wireguard) this.#withhold(unenforceable(IP_FAMILIES.flatMap((family) => nodeAddresses(node, family))));
    const ranges = IP_FAMILIES.flatMap((family) => {
      const given = podRanges.filter(({ address }) => address.family === family);
      return given.length > 0 ? given : podRangesOf(node, family);
    });
    if (ranges.length > 0) this.#want(OWN, ownElements(ranges, settings));
  }

  #withhold(elements: ReadonlySet<Element>): void {
    if (elements.size === this.#withheld.size && [...elements].every((element) => this.#withheld.has(element))) return;
    this.#withheld = elements;
    this.#runner.requestFull();
  }

  #want(owner: string, elements: readonly Element[]): void {
    if (this.#wanted.set(owner, elements)) this.#runner.request();
  }

  async #sync(full: boolean): Promise<void> {
    const { clock, observe } = this.#options;
    const began = clock.now();
    const commit = full ? await this.#reconcile(this.#setNames) : ((await this.#update()) ?? (await this.#reconcile()));
    const { generation, elements, rebuilt } = commit;
    if (this.#layout) this.#watch.start(generation);
    const repaired = full && rebuilt && this.#hasSynced;
    // What the table has counted by now was told by whoever ran before.
    if (!this.#hasSynced) this.#look();
    this.#hasSynced = true;
    observe({ kind: 'synced', full, seconds: (clock.now() - began) / 1000, elements, repaired });
  }

  /** Undefined: there is a set of a length of prefix that the table has none for yet, or nothing is known about it. */
  async #update(): Promise<RuleCommit | undefined> {
    const layout = this.#layout;
    if (!layout) return undefined;
    const { joined, left } = this.#wanted.takeChanges();
    const changes = { joined: this.#written(joined), left: this.#written(left) };
    const names = new Set(layout.sets.map(({ name }) => name));
    if (!changes.joined.every((element) => names.has(partsOf(element)[0]))) return undefined;
    this.#layout = undefined;
    const commit = await updateRules(this.#open(), layout, changes);
    this.#layout = layout;
    return commit;
  }

  /** @param keep the sets to keep, also without elements */
  async #reconcile(keep: readonly string[] = []): Promise<RuleCommit> {
    this.#layout = undefined;
    const { layout, commit } = await this.#makeEqual(this.#open(), this.#written(this.#wanted.takeAll()), keep);
    this.#layout = layout;
    this.#setNames = layout?.sets.map(({ name }) => name) ?? [];
    return commit;
  }

  /** Makes the table of a ruleset have these elements, and the rules for them. */
  async #makeEqual(
    ruleset: NftRuleset,
    wanted: readonly Element[],
    keep: readonly string[],
  ): Promise<{ readonly layout: TableLayout | undefined; readonly commit: RuleCommit }> {
    const setNames = new Set([...keep, ...wanted.map((element) => partsOf(element)[0])]);
    const layout = rulesLayout(this.#options.settings, setNames);
    if (layout) return { layout, commit: await reconcileRules(ruleset, layout, wanted) };
    return { layout, commit: { generation: undefined, elements: 0, rebuilt: removeRules(ruleset) } };
  }

  #written(elements: readonly Element[]): readonly Element[] {
    return this.#withheld.size === 0 ? elements : elements.filter((element) => !this.#withheld.has(element));
  }

  #open(): NftRuleset {
    this.#ruleset ??= this.#options.open();
    return this.#ruleset;
  }

  #disturbed(): void {
    this.#options.observe({ kind: 'disturbed' });
    this.#runner.requestFull();
  }

  #look(): void {
    const { settings, clock, observe } = this.#options;
    if (settings.tunnelPort === undefined) return;
    try {
      if (this.#layout)
        for (const refusals of this.#refusals.read(this.#open())) observe({ kind: 'refused', ...refusals });
    } catch (error) {
      observe({ kind: 'verifyFailed', error });
    }
    this.#looking = clock.setTimer(() => this.#look(), LOOK_MS);
  }
}

/** Owners of elements. Names of Nodes follow a prefix: a Node may be called like any of the others. */
const SETTINGS = 'settings';
const OWN = 'own';
const NODE = 'node ';

import {
  type Clock,
  type Drift,
  type IpFamily,
  inSlices,
  type Rest,
  type Steps,
  secondsSince,
  systemClock,
  yielder,
} from '../../core/index.ts';
import {
  type CommitReport,
  isStaleGeneration,
  type NftChange,
  type NftElement,
  type NftRuleset,
  nftFamily,
  type TableRef,
} from '../../netlink/nftables/index.ts';
import { ForeignWatch, type WatchNftables } from '../../nft/index.ts';
import {
  type Commit,
  type Dataplane,
  type LeftOut,
  LeftOutPorts,
  type NodePlan,
  type Plan,
  type PlanDelta,
  type ServicePortPlan,
  sameNodePlan,
} from '../index.ts';
import { cleanupNftables } from './cleanup.ts';
import { KUBE_PROXY_TABLE, TABLE_NAME } from './compile/names.ts';
import { forgetClients, seedClients } from './diff/affinity.ts';
import { type TablePlace, toChanges } from './diff/changes.ts';
import { countElements, type Edits } from './diff/edits.ts';
import { findDrift } from './diff/find-drift.ts';
import { type KernelState, readKernelState, slotHints } from './diff/kernel-state.ts';
import { Layout } from './diff/layout.ts';
import { createAll, reconcile } from './diff/reconcile.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { isRefusal, refusedByName, refusedByTrial } from './refused.ts';

/** How to make an NftablesDataplane. */
export interface NftablesDataplaneOptions {
  readonly family: IpFamily;
  /** Opens the conversation with the kernel, at the first use. */
  readonly open: () => NftRuleset;
  /** @default 'nodeplane' */
  readonly table?: string;
  /** Listens to changes of the ruleset; needed for `onForeignChange`. @default nobody listens */
  readonly watch?: WatchNftables;
  /** Somebody else changed the table, or may have: ask for a resync. */
  readonly onForeignChange?: () => void;
  /** Changes by others within this time are told as one. @default 50 */
  readonly debounceMs?: number;
  /** @default the system's */
  readonly clock?: Clock;
}

/** Transactions with more elements go to the kernel beside the event loop: about 3 us an element. */
const LARGE_COMMIT = 1000;
/**
 * So do transactions with new rules, when the maps hold more: the kernel then follows every jump of the table, also those
 * in verdict maps (nft_table_validate), about 2 us an element.
 */
const LARGE_TABLE = 5000;
/** And those with more rules, which are encoded in slices then: 20 to 60 us each, and a table without any Service has 277. */
const MANY_RULES = 100;
/** How often a resync starts again because the ruleset changed while it read. */
const STALE_ATTEMPTS = 4;

/** What is known to be in the kernel. */
interface Committed {
  readonly node: NodePlan;
  readonly layout: Layout;
}

/** Services as elements of nf_tables maps, below rules that stay the same however many Services there are. */
export class NftablesDataplane implements Dataplane {
  readonly family: IpFamily;
  readonly #place: TablePlace;
  readonly #open: () => NftRuleset;
  #ruleset: NftRuleset | undefined;
  readonly #watch: ForeignWatch | undefined;
  /** Undefined before the first resync and after a failure: the kernel may hold the old or the new state. */
  #committed: Committed | undefined;
  /** The ruleset's generation in which the table was last known to be right. */
  #rightGeneration: number | undefined;
  readonly #leftOut = new LeftOutPorts();

  constructor(options: NftablesDataplaneOptions) {
    const { family, open, table = TABLE_NAME, watch, onForeignChange, debounceMs = 50, clock = systemClock } = options;
    this.family = family;
    this.#place = { family, table };
    this.#open = open;
    if (watch && onForeignChange) {
      const generation = () => this.#nft.generation();
      const tables: TableRef[] = [{ kind: 'table', family: nftFamily(family), name: table }];
      this.#watch = new ForeignWatch({ watch, tables, clock, debounceMs, generation, changed: onForeignChange });
    }
  }

  /** Stops listening and gives the sockets back; the kernel stays as it is. */
  close(): void {
    this.#watch?.close();
    this.#ruleset?.close();
    this.#ruleset = undefined;
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    const committed = this.#committed;
    // What is the same for all Services changed: all rules may have.
    if (!committed || !sameNodePlan(committed.node, plan.node)) return this.resync(plan);
    // Should anything throw from here on, the layout is ahead of the kernel.
    this.#committed = undefined;
    const { layout } = committed;
    this.#leftOut.forget(delta);
    for (const port of delta.removed) layout.remove(port.key);
    const rest = yielder();
    await inSlices(this.#layOut(layout, delta.upserted), rest);
    const edits = await inSlices(layout.takeEdits(), rest);
    try {
      await this.#seedRecreated(edits);
      return await this.#apply(toChanges(this.#place, edits), edits, committed);
    } catch (error) {
      if (!isRefusal(error)) throw error;
      // The ports of this change, or what somebody else did to the table.
      const suspects = delta.upserted.map(({ key }) => key);
      return { ...(await this.#makeEqual(plan, suspects)), isWhole: true };
    }
  }

  async resync(plan: Plan): Promise<Commit> {
    return this.#makeEqual(plan, [...plan.ports.keys()], this.#leftOut.forgetAll());
  }

  async verify(): Promise<readonly Drift[]> {
    const committed = this.#committed;
    if (!committed) return [];
    // Nobody changed it since it was right: to read 100,000 elements and compare them takes a second.
    const now = this.#nft.generation();
    if (now === this.#stillRight()) {
      this.#rightGeneration = now;
      return [];
    }
    const { table } = this.#place;
    const kernel = await readKernelState(this.#nft, this.family, table);
    if (!kernel.table) return [{ object: `table ${table}`, difference: 'missing' }];
    const rest = yielder();
    const wanted = await inSlices(committed.layout.wanted(), rest);
    const drift = await inSlices(findDrift(wanted, kernel.table, { family: this.family, name: table }), rest);
    if (drift.length === 0) this.#rightGeneration = kernel.generation;
    return drift;
  }

  async cleanup(): Promise<void> {
    this.#committed = undefined;
    this.#watch?.close();
    cleanupNftables(this.#nft, this.family, [this.#place.table, KUBE_PROXY_TABLE]);
  }

  /** The last generation in which the table is known to be right, whatever others did to theirs meanwhile. */
  #stillRight(): number | undefined {
    const right = this.#rightGeneration;
    return right === undefined ? undefined : (this.#watch?.untouchedUntil(right) ?? right);
  }

  get #nft(): NftRuleset {
    this.#ruleset ??= this.#open();
    return this.#ruleset;
  }

  /**
   * What the kernel holds stays in force until all but the ports it refuses is committed at once.
   *
   * @param suspects keys of ports that may be refused; those known to be are left out from the start
   * @param before what was left out until now, by key
   */
  #makeEqual(plan: Plan, suspects: readonly string[], before: LeftOut = new Map()): Promise<Commit> {
    this.#committed = undefined;
    let last: Transaction | undefined;
    const attempt = () =>
      this.#attempt(plan, (transaction) => {
        last = transaction;
      });
    return this.#leftOut.commitRest(attempt, {
      isRefusal,
      named: (error) =>
        refusedByName(
          error,
          last!.changes,
          suspects.flatMap((key) => last!.layout.compiled.get(key) ?? []),
        ),
      tryOut: () => {
        const left = suspects.filter((key) => plan.ports.has(key) && !this.#leftOut.has(key));
        return refusedByTrial(
          this.#nft,
          { family: this.family, table: `${this.#place.table}-trial` },
          plan,
          left,
          before,
        );
      },
    });
  }

  /**
   * Makes the kernel equal to the plan without the ports that are left out.
   *
   * @param planned told of each transaction before it is committed
   */
  async #attempt(plan: Plan, planned: (transaction: Transaction) => void): Promise<Commit> {
    this.#rightGeneration = undefined;
    for (let stale = 0; ; stale++) {
      const layout = new Layout(this.family, plan.node);
      const rest = yielder();
      await inSlices(this.#layOut(layout, plan.ports.values()), rest);
      const commit = await oneAtATime(() => this.#bringInLine(plan, layout, rest, stale < STALE_ATTEMPTS, planned));
      if (commit !== 'stale') return commit;
    }
  }

  /** Puts ports into a layout, but for those that are left out. */
  *#layOut(layout: Layout, ports: Iterable<ServicePortPlan>): Steps<void> {
    for (const port of ports) {
      if (!this.#leftOut.has(port.key)) yield* layout.upsert(port);
      yield;
    }
  }

  /** @param exact whether it is `stale` when anybody changed the ruleset after it was read */
  async #bringInLine(
    plan: Plan,
    layout: Layout,
    rest: Rest,
    exact: boolean,
    planned: (transaction: Transaction) => void,
  ): Promise<Commit | 'stale'> {
    const readStarted = performance.now();
    const kernel = await readKernelState(this.#nft, this.family, this.#place.table);
    const readSeconds = secondsSince(readStarted);
    await inSlices(layout.place(kernel.table && slotHints(kernel.table)), rest);
    for (const name of kernel.table?.chains.keys() ?? []) layout.keepBalanceChain(name);
    const { changes, edits } = await this.#planResync(layout, kernel, rest);
    planned({ changes, layout });
    try {
      const expectGeneration = exact ? kernel.generation : undefined;
      const commit = await this.#apply(changes, edits, { node: plan.node, layout }, expectGeneration);
      return { ...commit, kernelSeconds: readSeconds + commit.kernelSeconds };
    } catch (error) {
      if (isStaleGeneration(error)) return 'stale';
      throw error;
    }
  }

  async #planResync(
    layout: Layout,
    kernel: KernelState,
    rest: Rest,
  ): Promise<{ changes: readonly NftChange[]; edits: Edits }> {
    const wanted = await inSlices(layout.wanted(), rest);
    const reconciled = kernel.table && (await inSlices(reconcile(wanted, kernel.table), rest));
    const edits = reconciled ?? createAll(wanted);
    const table = { kind: 'table', family: nftFamily(this.family), name: this.#place.table } as const;
    const create = { operation: 'create', object: { ...table, comment: 'Services, by nodeplane' } } as const;
    const head: NftChange[] = [];
    if (kernel.table && !reconciled) head.push({ operation: 'delete', object: table });
    if (!reconciled) head.push(create);
    if (kernel.table) seedClients(edits, kernel.table, wanted.affinities, wanted.affinities.keys());
    await rest();
    const changes = [...head, ...toChanges(this.#place, edits)];
    // In the same transaction, so that there is no packet without rules and none with both.
    if (kernel.kubeProxy) changes.push({ operation: 'delete', object: { ...table, name: KUBE_PROXY_TABLE } });
    return { changes, edits };
  }

  /** An affinity map that is made anew, with another timeout, takes its clients along. */
  async #seedRecreated(edits: Edits): Promise<void> {
    const names = [...edits.removeSets].filter((name) => edits.affinities.has(name));
    if (names.length === 0) return;
    const table = { kind: 'table', family: nftFamily(this.family), name: this.#place.table } as const;
    const sets = new Map(this.#nft.listSets(table).map((set) => [set.name, set]));
    const present = names.filter((name) => sets.has(name));
    const elements = new Map<string, readonly NftElement[]>();
    for (const name of present) elements.set(name, await this.#nft.listElementsAsync(sets.get(name)!));
    seedClients(edits, { sets, elements }, edits.affinities, present);
  }

  /** Brings changes into the kernel in one transaction, none when there is nothing to do; `next` is committed then. */
  async #apply(
    changes: readonly NftChange[],
    edits: Edits,
    next: Committed,
    expectGeneration?: number,
  ): Promise<Commit> {
    const nft = this.#nft;
    const elements = countElements(edits);
    const right = this.#stillRight();
    const rules = edits.writeChains.reduce((sum, { body }) => sum + body.rules.length, 0);
    let report: CommitReport | undefined;
    if (changes.length > 0) {
      const isValidated = edits.writeChains.length > 0 && next.layout.totals.elements > LARGE_TABLE;
      const large = elements > LARGE_COMMIT || rules > MANY_RULES || isValidated;
      report = large ? await nft.commitAsync(changes, { expectGeneration }) : nft.commit(changes, { expectGeneration });
      this.#watch?.committed(report.generation);
    }
    const forgotten = await forgetClients(nft, this.#place, edits.affinities);
    this.#committed = next;
    this.#rightGeneration = forgotten > 0 ? undefined : rightAfter(expectGeneration ?? right, report);
    this.#watch?.start(forgotten > 0 ? nft.generation() : (report?.generation ?? expectGeneration));
    const { totals } = next.layout;
    return {
      kernelSeconds: report?.kernelSeconds ?? 0,
      objects: {
        elements: { total: totals.elements, written: elements + forgotten },
        rules: { total: totals.rules, written: rules },
      },
      leftOut: this.#leftOut.list(),
    };
  }
}

/**
 * The generation in which the table is known to be right: that of our commit, if nobody made another one in between.
 *
 * @param before the one in which it was right until now
 */
function rightAfter(before: number | undefined, report: CommitReport | undefined): number | undefined {
  if (report?.generation === undefined) return before;
  return before !== undefined && report.generation === before + 1 ? report.generation : undefined;
}

/** What was committed, or refused. */
interface Transaction {
  readonly changes: readonly NftChange[];
  /** What it was made from. */
  readonly layout: Layout;
}

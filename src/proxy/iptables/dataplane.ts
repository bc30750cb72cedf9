import { type Drift, type IpFamily, inSlices, secondsSince, yielder } from '../../core/index.ts';
import { type Exec, exec as runProgram } from '../../sys/index.ts';
import {
  type Blame,
  type Commit,
  type Dataplane,
  type LeftOut,
  LeftOutPorts,
  type NodePlan,
  type Plan,
  type PlanDelta,
  sameNodePlan,
} from '../index.ts';
import {
  applyDiff,
  type ChainSet,
  emptyChainSet,
  type IptablesTool,
  type IptablesVariant,
  iptablesTool,
  isEmptyDiff,
  type LegacyWatch,
  type NftTables,
  type Table,
  tableDrift,
} from '../rules/index.ts';
import { cleanupIptables } from './cleanup.ts';
import { type KernelState, readKernelState } from './kernel-state.ts';
import { Layout } from './layout.ts';
import { isRefusal, refusedByName, refusedByTrial } from './refused.ts';
import { planChanges, planTakeover, type TableChanges } from './transaction.ts';
import { findDrift } from './verify.ts';

/** How to make an IptablesDataplane. */
export interface IptablesDataplaneOptions {
  readonly family: IpFamily;
  /** See `detectVariant`. */
  readonly variant: IptablesVariant;
  /** Runs the iptables programs. @default the real one */
  readonly exec?: Exec;
  /**
   * Drop forwarded packets conntrack calls INVALID; false when `net.netfilter.nf_conntrack_tcp_be_liberal` was set when
   * the agent started. @default true
   */
  readonly dropInvalid?: boolean;
  /** Whether the named counters of `COUNTERS` exist in this namespace, to be counted into. @default false */
  readonly accounting?: boolean;
  /** Given when the other variant holds a proxy's rules (`DetectedVariant.otherHoldsServices`). @default leave it alone */
  readonly otherVariant?: OtherVariant;
  /** The tables as the kernel has them, of variant nft. @default what the programs tell is all */
  readonly kernelTables?: NftTables | undefined;
  /** Hears what is written, of variant legacy. @default nobody does */
  readonly legacyWatch?: LegacyWatch | undefined;
}

/**
 * The rules of both variants apply to each packet. After the first successful resync, when ours stand, a proxy's are removed
 * from the other one; one of the two functions is told. A failure does not fail the resync; the next one tries again.
 */
export interface OtherVariant {
  readonly cleaned: (variant: IptablesVariant) => void;
  readonly failed: (variant: IptablesVariant, error: unknown) => void;
}

/** What is known to be in the kernel, and the layout it was made from. */
interface Committed {
  readonly node: NodePlan;
  readonly layout: Layout;
  readonly chains: ChainSet;
  /** Rules of ours. */
  readonly totals: Record<Table, number>;
}

/** Services as iptables rules: kube-proxy's entry chains, a tree below them, one rule an endpoint. */
export class IptablesDataplane implements Dataplane {
  readonly family: IpFamily;
  readonly #tool: IptablesTool;
  readonly #otherTool: IptablesTool;
  readonly #kernelTables: NftTables | undefined;
  readonly #legacyWatch: LegacyWatch | undefined;
  readonly #dropInvalid: boolean;
  readonly #accounting: boolean;
  /** Undefined when there is nothing to clean up in it, or no longer. */
  #otherVariant: OtherVariant | undefined;
  /** Undefined before the first resync and after a failure: the kernel may hold the old or the new state. */
  #committed: Committed | undefined;
  readonly #leftOut = new LeftOutPorts();

  constructor(options: IptablesDataplaneOptions) {
    const { family, variant, exec = runProgram, dropInvalid = true, accounting = false, otherVariant } = options;
    this.family = family;
    this.#dropInvalid = dropInvalid;
    this.#accounting = accounting;
    this.#otherVariant = otherVariant;
    this.#kernelTables = options.kernelTables;
    this.#legacyWatch = options.legacyWatch;
    this.#tool = iptablesTool(family, variant, exec);
    this.#otherTool = iptablesTool(family, variant === 'nft' ? 'legacy' : 'nft', exec);
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    const committed = this.#committed;
    // What is the same for all Services changed: all their chains may have.
    if (!committed || !sameNodePlan(committed.node, plan.node)) return this.resync(plan);
    // Should anything throw from here on, the layout is ahead of the kernel.
    this.#committed = undefined;
    this.#leftOut.forget(delta);
    for (const port of delta.removed) committed.layout.remove(port.key);
    const rest = yielder();
    for (const port of delta.upserted) {
      await inSlices(committed.layout.upsert(port), rest);
      await rest();
    }
    const edits = await inSlices(committed.layout.takeEdits(), rest);
    try {
      return await this.#commit(await inSlices(planChanges(committed.chains, edits), rest), committed);
    } catch (error) {
      const suspects = delta.upserted.map(({ key }) => key);
      await this.#leftOut.leaveOut(error, this.#blame(committed.layout, suspects));
      // One table may have taken its part before the other failed: what the kernel holds has to be read.
      return { ...(await this.#makeEqual(plan, suspects)), isWhole: true };
    }
  }

  async resync(plan: Plan): Promise<Commit> {
    const before = this.#leftOut.forgetAll();
    this.#kernelTables?.putInPlace();
    const commit = await this.#makeEqual(plan, [...plan.ports.keys()], before);
    this.#kernelTables?.wake();
    await this.#cleanOtherVariant();
    return commit;
  }

  async verify(): Promise<readonly Drift[]> {
    const committed = this.#committed;
    const tables = this.#kernelTables;
    if (!committed || tables?.isRight()) return [];
    const generation = tables?.startReading();
    const drift = await tableDrift(tables, async () => {
      return inSlices(findDrift(committed.chains, await readKernelState(this.#tool, committed.chains)));
    });
    if (generation !== undefined && drift.length === 0) tables?.foundRight(generation);
    return drift;
  }

  async cleanup(): Promise<void> {
    this.#committed = undefined;
    this.#legacyWatch?.pause();
    await cleanupIptables(this.#tool);
  }

  close(): void {
    this.#legacyWatch?.pause();
    this.#kernelTables?.close();
  }

  async #cleanOtherVariant(): Promise<void> {
    const otherVariant = this.#otherVariant;
    const otherTool = this.#otherTool;
    if (!otherVariant) return;
    try {
      await cleanupIptables(otherTool);
      this.#otherVariant = undefined;
      otherVariant.cleaned(otherTool.variant);
    } catch (error) {
      otherVariant.failed(otherTool.variant, error);
    }
  }

  /**
   * @param suspects keys of ports that may be refused; those known to be are left out from the start
   * @param before what was left out until now, by key
   */
  async #makeEqual(plan: Plan, suspects: readonly string[], before?: LeftOut): Promise<Commit> {
    this.#committed = undefined;
    const since = this.#kernelTables?.generation();
    // The programs read the kernel while we compile.
    let reading: Promise<KernelState> | undefined = this.#readKernel();
    const family = this.family;
    const dropInvalid = this.#dropInvalid;
    const accounting = this.#accounting;
    const rest = yielder();
    // What led here may have used the slice of this turn.
    await rest();
    const layout = new Layout({ family, node: plan.node, dropInvalid, accounting });
    for (const port of plan.ports.values()) {
      if (!this.#leftOut.has(port.key)) await inSlices(layout.upsert(port), rest);
      await rest();
    }
    const next = { node: plan.node, layout, chains: emptyChainSet(), totals: { filter: 0, nat: 0 } };
    const attempt = async (): Promise<Commit> => {
      const read = reading ?? this.#readKernel();
      reading = undefined;
      for (const key of layout.compiled.keys()) if (this.#leftOut.has(key)) layout.remove(key);
      const edits = await inSlices(layout.takeEdits(), rest);
      for (const { table, ...diff } of await inSlices(planChanges(next.chains, edits), rest)) {
        next.totals[table] += (await inSlices(applyDiff(next.chains[table], diff), rest)).change;
      }
      const started = performance.now();
      const kernel = await read;
      const readSeconds = secondsSince(started);
      const commit = await this.#commit(await inSlices(planTakeover(next.chains, kernel), rest), next);
      return { ...commit, kernelSeconds: readSeconds + commit.kernelSeconds };
    };
    const commit = await this.#leftOut.commitRest(attempt, this.#blame(layout, suspects, before));
    // After a write it listens already, but all may have been right.
    if (since !== undefined) this.#kernelTables?.listen(since);
    return commit;
  }

  /** A failure is told to who awaits it, not to the process, should nobody come to it. */
  #readKernel(): Promise<KernelState> {
    const reading = readKernelState(this.#tool);
    reading.catch(() => {});
    return reading;
  }

  /** @param layout what the refused restore was made from */
  #blame(layout: Layout, suspects: readonly string[], before: LeftOut = new Map()): Blame {
    return {
      isRefusal,
      named: (error) => refusedByName(error, layout.compiled),
      tryOut: () => refusedByTrial(this.#tool, layout.compiled, suspects, before),
    };
  }

  /** Brings `changes` into the kernel in one restore, none when there is nothing to do; `next` is committed then. */
  async #commit(changes: readonly TableChanges[], next: Committed): Promise<Commit> {
    const needed = changes.filter(
      (change) => !isEmptyDiff(change) || change.insert.length > 0 || change.withdraw.length > 0,
    );
    let kernelSeconds = 0;
    this.#legacyWatch?.pause();
    if (needed.length > 0) {
      const started = performance.now();
      const restore = () => this.#tool.restore(needed);
      // Each table is a transaction.
      await (this.#kernelTables?.writing(needed.length, rulesIn(needed), restore) ?? restore());
      kernelSeconds = secondsSince(started);
    }
    const written = { filter: 0, nat: 0 };
    for (const change of needed) {
      const rules = await inSlices(applyDiff(next.chains[change.table], change));
      next.totals[change.table] += rules.change;
      written[change.table] = rules.written;
    }
    this.#committed = next;
    this.#legacyWatch?.written(next.totals);
    const counts = (table: Table) => ({ total: next.totals[table], written: written[table] });
    return {
      kernelSeconds,
      objects: { filter: counts('filter'), nat: counts('nat') },
      leftOut: this.#leftOut.list(),
    };
  }
}

/** How many rules a restore brings. */
function rulesIn(changes: readonly TableChanges[]): number {
  let rules = 0;
  for (const { write } of changes) for (const chain of write.values()) rules += chain.rules.length;
  return rules;
}

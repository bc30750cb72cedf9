import { isDeepStrictEqual } from 'node:util';
import { type IpFamily, inSlices, secondsSince, yielder } from '../../core/index.ts';
import { type Exec, exec as runProgram } from '../../sys/index.ts';
import type { Commit, Dataplane, Drift, LeftOutPort, NodePlan, Plan, PlanDelta } from '../index.ts';
import {
  applyDiff,
  type ChainSet,
  countRules,
  emptyChainSet,
  type IptablesTool,
  type IptablesVariant,
  iptablesTool,
  isEmptyDiff,
  type Table,
  writeRestore,
} from '../rules/index.ts';
import { cleanupIptables } from './cleanup.ts';
import { wantedJumps } from './fixed-chains.ts';
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
}

/**
 * The rules of both variants apply to each packet. After the first successful resync, when ours stand, a proxy's are removed
 * from the other one; one of the two functions is told. A failure does not fail the resync; the next one tries again.
 */
export interface OtherVariant {
  readonly cleaned: (variant: IptablesVariant) => void;
  readonly failed: (variant: IptablesVariant, error: unknown) => void;
}

/** Restores that may fail in one sync: all but the last of them may name a Service port to leave out, the last tries all. */
const MAX_ATTEMPTS = 9;

/** Service ports to leave out, by key. */
type LeftOut = ReadonlyMap<string, LeftOutPort>;
const NOTHING_LEFT_OUT: LeftOut = new Map();

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
  readonly mode = 'iptables';
  readonly family: IpFamily;
  readonly #tool: IptablesTool;
  readonly #otherTool: IptablesTool;
  readonly #dropInvalid: boolean;
  readonly #accounting: boolean;
  /** Undefined when there is nothing to clean up in it, or no longer. */
  #otherVariant: OtherVariant | undefined;
  /** Undefined before the first resync and after a failure: the kernel may hold the old or the new state. */
  #committed: Committed | undefined;
  /** Ports iptables refuses, by key: not programmed until they change or everything is tried again. */
  readonly #refused = new Map<string, LeftOutPort>();

  constructor(options: IptablesDataplaneOptions) {
    const { family, variant, exec = runProgram, dropInvalid = true, accounting = false, otherVariant } = options;
    this.family = family;
    this.#dropInvalid = dropInvalid;
    this.#accounting = accounting;
    this.#otherVariant = otherVariant;
    this.#tool = iptablesTool(family, variant, exec);
    this.#otherTool = iptablesTool(family, variant === 'nft' ? 'legacy' : 'nft', exec);
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    const committed = this.#committed;
    // What is the same for all Services changed: all their chains may have.
    if (!committed || !isDeepStrictEqual(committed.node, plan.node)) return this.resync(plan);
    // Should anything throw from here on, the layout is ahead of the kernel.
    this.#committed = undefined;
    for (const port of [...delta.removed, ...delta.upserted]) this.#refused.delete(port.key);
    for (const port of delta.removed) committed.layout.remove(port.key);
    const rest = yielder();
    for (const port of delta.upserted) {
      await inSlices(committed.layout.upsert(port), rest);
      await rest();
    }
    const edits = await inSlices(committed.layout.takeEdits(), rest);
    try {
      return await this.#commit(planChanges(committed.chains, edits), committed);
    } catch (error) {
      const suspects = delta.upserted.map(({ key }) => key);
      await this.#leaveOut(error, committed.layout, suspects, 1, NOTHING_LEFT_OUT);
      // One table may have taken its part before the other failed: what the kernel holds has to be read.
      return this.#makeEqual(plan, suspects);
    }
  }

  async resync(plan: Plan): Promise<Commit> {
    const before = new Map(this.#refused);
    this.#refused.clear();
    const commit = await this.#makeEqual(plan, [...plan.ports.keys()], before);
    await this.#cleanOtherVariant();
    return commit;
  }

  async verify(): Promise<readonly Drift[]> {
    const committed = this.#committed;
    if (!committed) return [];
    const jumps = wantedJumps(this.family, committed.node);
    return findDrift(committed.chains, jumps, await readKernelState(this.#tool));
  }

  async cleanup(): Promise<void> {
    this.#committed = undefined;
    await cleanupIptables(this.#tool);
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
   * @param suspects ports that may be refused; those known to be are left out from the start
   * @param before what was left out until now, by key
   */
  async #makeEqual(plan: Plan, suspects: readonly string[], before: LeftOut = NOTHING_LEFT_OUT): Promise<Commit> {
    this.#committed = undefined;
    // The programs read the kernel while we compile.
    let reading = this.#readKernel();
    const family = this.family;
    const dropInvalid = this.#dropInvalid;
    const accounting = this.#accounting;
    const layout = new Layout({ family, node: plan.node, dropInvalid, accounting });
    const rest = yielder();
    for (const port of plan.ports.values()) {
      if (!this.#refused.has(port.key)) await inSlices(layout.upsert(port), rest);
      await rest();
    }
    const jumps = wantedJumps(this.family, plan.node);
    const next = { node: plan.node, layout, chains: emptyChainSet(), totals: { filter: 0, nat: 0 } };
    for (let attempt = 1; ; attempt++) {
      const edits = await inSlices(layout.takeEdits(), rest);
      for (const { table, ...diff } of planChanges(next.chains, edits)) {
        next.totals[table] += applyDiff(next.chains[table], diff);
      }
      const started = performance.now();
      const kernel = await reading;
      const readSeconds = secondsSince(started);
      try {
        const commit = await this.#commit(planTakeover(next.chains, jumps, kernel), next);
        return { ...commit, kernelSeconds: readSeconds + commit.kernelSeconds };
      } catch (error) {
        await this.#leaveOut(error, layout, suspects, attempt, before);
        reading = this.#readKernel();
      }
    }
  }

  /** A failure is told to who awaits it, not to the process, should nobody come to it. */
  #readKernel(): Promise<KernelState> {
    const reading = readKernelState(this.#tool);
    reading.catch(() => {});
    return reading;
  }

  /** Takes the ports that `error` is about out of `layout`; throws it when it is about none, or there is no end to them. */
  async #leaveOut(
    error: unknown,
    layout: Layout,
    suspects: readonly string[],
    attempt: number,
    before: LeftOut,
  ): Promise<void> {
    if (attempt > MAX_ATTEMPTS) throw error;
    let refused: LeftOut = attempt < MAX_ATTEMPTS ? refusedByName(error, layout.compiled) : NOTHING_LEFT_OUT;
    if (refused.size === 0 && isRefusal(error)) {
      const tried = suspects.flatMap((key) => {
        const port = layout.compiled.get(key);
        return port ? [[key, port] as const] : [];
      });
      refused = await refusedByTrial(this.#tool, new Map(tried), before);
    }
    if (refused.size === 0) throw error;
    for (const [key, port] of refused) {
      this.#refused.set(key, port);
      layout.remove(key);
    }
  }

  /** Brings `changes` into the kernel in one restore, none when there is nothing to do; `next` is committed then. */
  async #commit(changes: readonly TableChanges[], next: Committed): Promise<Commit> {
    const needed = changes.filter((change) => !isEmptyDiff(change) || change.insert.length > 0);
    let kernelSeconds = 0;
    if (needed.length > 0) {
      const restore = writeRestore(needed);
      const started = performance.now();
      await this.#tool.restore(restore);
      kernelSeconds = secondsSince(started);
    }
    const written = { filter: 0, nat: 0 };
    for (const change of needed) {
      next.totals[change.table] += applyDiff(next.chains[change.table], change);
      written[change.table] = countRules(change.write);
    }
    this.#committed = next;
    const counts = (table: Table) => ({ total: next.totals[table], written: written[table] });
    const leftOut = [...this.#refused.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    return { kernelSeconds, objects: { filter: counts('filter'), nat: counts('nat') }, leftOut };
  }
}

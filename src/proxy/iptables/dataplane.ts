import { isDeepStrictEqual } from 'node:util';
import type { IpFamily } from '../../core/index.ts';
import { type Exec, exec as runProgram } from '../../sys/index.ts';
import type { Commit, Dataplane, Drift, NodePlan, Plan, PlanDelta } from '../index.ts';
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
import { readKernelState } from './kernel-state.ts';
import { Layout } from './layout.ts';
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
  readonly mode = 'iptables';
  readonly family: IpFamily;
  private readonly tool: IptablesTool;
  private readonly dropInvalid: boolean;
  /** Undefined before the first resync and after a failure: the kernel may hold the old or the new state. */
  private committed: Committed | undefined;

  constructor(options: IptablesDataplaneOptions) {
    const { family, variant, exec = runProgram, dropInvalid = true } = options;
    this.family = family;
    this.dropInvalid = dropInvalid;
    this.tool = iptablesTool(family, variant, exec);
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    const { committed } = this;
    // What is the same for all Services changed: all their chains may have.
    if (!committed || !isDeepStrictEqual(committed.node, plan.node)) return this.resync(plan);
    // Should anything throw from here on, the layout is ahead of the kernel.
    this.committed = undefined;
    for (const port of delta.removed) committed.layout.remove(port.key);
    for (const port of delta.upserted) committed.layout.upsert(port);
    return this.commit(planChanges(committed.chains, committed.layout.takeEdits()), committed);
  }

  async resync(plan: Plan): Promise<Commit> {
    this.committed = undefined;
    const layout = new Layout({ family: this.family, node: plan.node, dropInvalid: this.dropInvalid });
    for (const port of plan.ports.values()) layout.upsert(port);
    const chains = emptyChainSet();
    const totals = { filter: 0, nat: 0 };
    for (const { table, ...diff } of planChanges(chains, layout.takeEdits())) {
      totals[table] = applyDiff(chains[table], diff);
    }

    const started = performance.now();
    const kernel = await readKernelState(this.tool);
    const readSeconds = secondsSince(started);
    const commit = await this.commit(planTakeover(chains, kernel), { node: plan.node, layout, chains, totals });
    return { ...commit, kernelSeconds: readSeconds + commit.kernelSeconds };
  }

  async verify(): Promise<readonly Drift[]> {
    if (!this.committed) return [];
    return findDrift(this.committed.chains, await readKernelState(this.tool));
  }

  async cleanup(): Promise<void> {
    this.committed = undefined;
    await cleanupIptables(this.tool);
  }

  /** Brings `changes` into the kernel in one restore, none when there is nothing to do; `next` is committed then. */
  private async commit(changes: readonly TableChanges[], next: Committed): Promise<Commit> {
    const needed = changes.filter((change) => !isEmptyDiff(change) || change.insert.length > 0);
    let kernelSeconds = 0;
    if (needed.length > 0) {
      const restore = writeRestore(needed);
      const started = performance.now();
      await this.tool.restore(restore);
      kernelSeconds = secondsSince(started);
    }
    const written = { filter: 0, nat: 0 };
    for (const change of needed) {
      next.totals[change.table] += applyDiff(next.chains[change.table], change);
      written[change.table] = countRules(change.write);
    }
    this.committed = next;
    const counts = (table: Table) => ({ total: next.totals[table], written: written[table] });
    return { kernelSeconds, objects: { filter: counts('filter'), nat: counts('nat') } };
  }
}

function secondsSince(started: number): number {
  return (performance.now() - started) / 1000;
}

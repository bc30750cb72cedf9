import {
  compareIp,
  type Drift,
  type IpAddress,
  type IpFamily,
  inSlices,
  NodeplaneError,
  type Rest,
  secondsSince,
  systemClock,
  yielder,
} from '../../core/index.ts';
import { exec as runProgram } from '../../sys/index.ts';
import {
  type Commit,
  type Dataplane,
  LeftOutPorts,
  LOCALHOST_STAND_INS,
  type NodePlan,
  type Plan,
  type PlanDelta,
  type PortTraffic,
  type ServicePortPlan,
  sameNodePlan,
  translatedNodePortAddresses,
} from '../index.ts';
import { type IptablesTool, iptablesTool, type LegacyWatch, type NftTables, tableDrift } from '../rules/index.ts';
import { cleanupIpvs } from './cleanup.ts';
import { fixedRules } from './compile/rules.ts';
import { everything } from './diff/diff.ts';
import { Draining } from './diff/drain.ts';
import { Layout } from './diff/layout.ts';
import type { KernelState } from './diff/state.ts';
import { DrainWatch } from './drain-watch.ts';
import type { IpvsKernel } from './kernel/kernel.ts';
import { openIpvsKernel } from './kernel/netlink-kernel.ts';
import { type Ownership, readState } from './kernel/read-state.ts';
import { removeRules, restoreRules, ruleDrift } from './kernel/rules-state.ts';
import type { IpvsDataplaneOptions } from './options.ts';
import { readTraffic } from './traffic.ts';
import { findDrift } from './verify.ts';
import { type Done, type Target, Writer } from './writer.ts';

const GRACE_PERIOD_MS = 15 * 60_000;

/** What is known to be in the kernel, and the layout it was made from. */
interface Committed extends Target {
  /** Undefined while everything retires. */
  readonly node: NodePlan | undefined;
  readonly nodePortAddresses: readonly IpAddress[];
  readonly rules: number;
}

/** Services as virtual servers of IPVS, with ipsets and a few iptables rules for what IPVS does not decide. */
export class IpvsDataplane implements Dataplane {
  readonly family: IpFamily;
  readonly #scheduler: string;
  readonly #tool: IptablesTool;
  readonly #kernelTables: NftTables | undefined;
  readonly #legacyWatch: LegacyWatch | undefined;
  readonly #kernel: IpvsKernel;
  readonly #ownership: Ownership;
  readonly #watch: DrainWatch;
  readonly #writer: Writer;
  readonly #leftOut = new LeftOutPorts();
  /** While a sync is under way, nothing else may change the kernel. */
  #busy = false;
  /** The layout of the last sync that succeeded. */
  #served: Layout | undefined;
  /** Undefined before the first resync and after a failure: the kernel may hold the old or the new state. */
  #committed: Committed | undefined;

  /** Opens netlink sockets in the network namespace of the calling thread. Throws as `openIpvsKernel`. */
  constructor(options: IpvsDataplaneOptions) {
    const { family, variant, exec = runProgram, clock = systemClock, gracePeriodMs = GRACE_PERIOD_MS } = options;
    this.family = family;
    this.#scheduler = options.scheduler || 'rr';
    this.#tool = iptablesTool(family, variant, exec);
    this.#kernelTables = options.kernelTables;
    this.#legacyWatch = options.legacyWatch;
    this.#kernel = options.kernel ?? openIpvsKernel(family);
    // Whatever becomes of the sets that say so too.
    const made = new Set<string>();
    this.#ownership = { excludeCidrs: options.excludeCidrs ?? [], made };
    const draining = new Draining();
    this.#watch = new DrainWatch({ clock, draining, look: () => this.#look() });
    this.#writer = new Writer({
      kernel: this.#kernel,
      clock,
      draining,
      made,
      leftOut: this.#leftOut,
      gracePeriodMs,
      applied: () => this.#watch.schedule(),
    });
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    await this.#watch.idle();
    const committed = this.#committed;
    // What is the same for all Services changed: all of them may have to change.
    if (!committed?.node || !sameNodePlan(committed.node, plan.node)) return this.resync(plan);
    return this.#alone(() => this.#syncWith(committed, plan, delta));
  }

  async #syncWith(committed: Committed, plan: Plan, delta: PlanDelta): Promise<Commit> {
    // Should anything throw from here on, the layout is ahead of the kernel.
    this.#committed = undefined;
    const { layout } = committed;
    this.#leftOut.forget(delta);
    for (const port of delta.removed) layout.remove(port.key);
    const rest = yielder();
    for (const port of delta.upserted) {
      await this.#layOut(layout, port, rest);
      await rest();
    }
    const total = await inSlices(this.#writer.bringInLine(committed, layout.takeTouched()), rest);
    // Somebody changed what is ours: it has to be read anew.
    if (!total) return this.#makeEqual(plan);
    this.#committed = committed;
    return this.#commitOf(committed, total, 0);
  }

  async resync(plan: Plan): Promise<Commit> {
    await this.#watch.idle();
    this.#leftOut.forgetAll();
    return this.#alone(() => this.#makeEqual(plan));
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    this.#busy = true;
    try {
      return await work();
    } finally {
      this.#busy = false;
    }
  }

  async verify(): Promise<readonly Drift[]> {
    const committed = this.#committed;
    const kernel = this.#kernel;
    if (!committed?.node) return [];
    const rules = await tableDrift(this.#kernelTables, () =>
      ruleDrift(this.#tool, fixedRules(this.family, committed.node!)),
    );
    await this.#watch.idle();
    // What is drained meanwhile would look like drift.
    return this.#alone(async () => {
      const wrong = kernel.wrong().map((object): Drift => ({ object, difference: 'missing' }));
      const found = await inSlices(readState(kernel, this.#ownership));
      const addresses = nodePortAddressesOf(this.family, committed.node!, found);
      return [...rules, ...wrong, ...(await inSlices(findDrift(committed, found, addresses)))];
    });
  }

  async cleanup(): Promise<void> {
    this.#committed = undefined;
    this.#legacyWatch?.pause();
    this.#watch.cancel();
    await cleanupIpvs({ tool: this.#tool, kernel: this.#kernel, ...this.#ownership });
  }

  /**
   * Gives way to another mode, whose rules stand: as `cleanup`, but lets open connections finish. Virtual servers get
   * nothing new, and go with the last of their connections or when the grace period is over.
   *
   * @param signal ends the wait for connections; what is being drained then stays
   * @returns when nothing is left, or soon after the signal; `close` has to follow
   * @throws ERR_IPTABLES; KernelError for what the kernel refuses
   */
  async retire(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    const stop = () => this.#watch.close();
    signal?.addEventListener('abort', stop, { once: true });
    try {
      let done = false;
      while (!done) done = await this.#retire();
    } finally {
      signal?.removeEventListener('abort', stop);
    }
  }

  /** False when somebody changed what was just read: then it has to be read anew. */
  async #retire(): Promise<boolean> {
    this.#committed = undefined;
    this.#legacyWatch?.pause();
    await removeRules(this.#tool);
    await this.#watch.idle();
    const state = await inSlices(readState(this.#kernel, this.#ownership));
    const layout = new Layout({
      nodePortAddresses: [],
      nodeIp: undefined,
      scheduler: 'rr',
      masqueradeMark: 0,
    });
    const retiring: Committed = { node: undefined, layout, state, nodePortAddresses: [], rules: 0 };
    if (!(await inSlices(this.#writer.bringInLine(retiring, everything(layout, state))))) return false;
    this.#committed = retiring;
    await this.#watch.drained();
    if (!this.#watch.isClosed) this.#kernel.removeAll();
    return true;
  }

  /** What each Service port has carried, by its key; nothing before the first sync and after `close`. Throws KernelError. */
  traffic(): ReadonlyMap<string, PortTraffic> {
    return this.#served ? readTraffic(this.#kernel, this.#served) : new Map();
  }

  /**
   * Ends what goes on between the syncs, once the look that is under way is over; the kernel stays as it is. What is being
   * drained then stays until the next start. No sync may be under way.
   */
  async close(): Promise<void> {
    this.#watch.close();
    await this.#watch.idle();
    // A scrape may still come: it finds no counters.
    this.#served = undefined;
    this.#kernelTables?.close();
    this.#legacyWatch?.pause();
    this.#kernel.close();
  }

  async #makeEqual(plan: Plan): Promise<Commit> {
    this.#committed = undefined;
    const started = performance.now();
    this.#kernel.prepare();
    const rest = yielder();
    const state = await inSlices(readState(this.#kernel, this.#ownership), rest);
    const readSeconds = secondsSince(started);
    const nodePortAddresses = nodePortAddressesOf(this.family, plan.node, state);
    const layout = new Layout({
      nodePortAddresses,
      nodeIp: plan.node.nodeIp,
      scheduler: this.#scheduler,
      masqueradeMark: plan.node.masqueradeMark,
    });
    for (const port of plan.ports.values()) {
      if (!this.#leftOut.has(port.key)) await this.#layOut(layout, port, rest);
      await rest();
    }
    layout.takeTouched();
    const rules = fixedRules(this.family, plan.node);
    const { filter, mangle, nat } = rules.counts;
    const next: Committed = { node: plan.node, layout, state, nodePortAddresses, rules: filter + mangle + nat };
    const total = await inSlices(this.#writer.bringInLine(next, everything(layout, state)), rest);
    if (!total) {
      throw new NodeplaneError(
        'ERR_DATAPLANE',
        `The virtual servers of ${this.family} changed while they were brought in line with the plan; the next sync tries again. Should it not end, stop the other program that writes IPVS here (ipvsadm, keepalived)`,
      );
    }
    const restoring = performance.now();
    // They lead packets to what stands by now.
    this.#kernelTables?.putInPlace();
    const since = this.#kernelTables?.generation();
    this.#legacyWatch?.pause();
    const written = await restoreRules(this.#tool, rules);
    this.#legacyWatch?.written(rules.counts);
    this.#kernelTables?.wake();
    if (since !== undefined) this.#kernelTables?.listen(since);
    const kernelSeconds = readSeconds + total.kernelSeconds + secondsSince(restoring);
    this.#committed = next;
    this.#served = layout;
    return this.#commitOf(next, { ...total, kernelSeconds }, written);
  }

  /** A Service port that cannot be laid out is left out. */
  async #layOut(layout: Layout, port: ServicePortPlan, rest: Rest): Promise<void> {
    try {
      await inSlices(layout.upsert(port), rest);
    } catch (error) {
      if (!(error instanceof NodeplaneError)) throw error;
      this.#leftOut.add({ key: port.key, name: port.name, reason: error.message });
      layout.remove(port.key);
    }
  }

  async #look(): Promise<void> {
    const committed = this.#committed;
    // A sync that is under way has planned with what is there now.
    if (this.#busy || !committed) return;
    try {
      await inSlices(this.#writer.removeDrained(committed));
    } catch (error) {
      // What the kernel refuses for good the next resync tells.
      this.#committed = undefined;
      throw error;
    }
  }

  #commitOf({ state, rules }: Committed, { written, kernelSeconds }: Done, rulesWritten: number): Commit {
    const objects = {
      servers: { total: state.servers.size, written: written.servers },
      destinations: { total: state.destinationCount, written: written.destinations },
      elements: { total: state.elements.size, written: written.elements },
      addresses: { total: state.bound.size, written: written.addresses },
      rules: { total: rules, written: rulesWritten },
    };
    return { kernelSeconds, objects, leftOut: this.#leftOut.list() };
  }
}

/**
 * The addresses NodePorts answer at. `all`: those of the node's interfaces, kube-ipvs0, loopback and IPv6 link-local ones
 * excepted, as in kube-proxy; and what stands in for loopback, which no interface has.
 */
function nodePortAddressesOf(family: IpFamily, node: NodePlan, { elsewhere }: KernelState): readonly IpAddress[] {
  const addresses = translatedNodePortAddresses(family, node);
  if (addresses !== 'all') return addresses;
  const standIns = node.loopbackNodePorts ? [LOCALHOST_STAND_INS[family]] : [];
  return [...elsewhere.values(), ...standIns].sort(compareIp);
}

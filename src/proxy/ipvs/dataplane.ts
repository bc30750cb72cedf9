import {
  type Clock,
  compareIp,
  formatIp,
  type IpAddress,
  type IpFamily,
  inSlices,
  isLoopback,
  NodeplaneError,
  type Steps,
  secondsSince,
  systemClock,
  type Timer,
  yielder,
} from '../../core/index.ts';
import { exec as runProgram } from '../../sys/index.ts';
import type { Commit, Dataplane, Drift, LeftOutPort, NodePlan, Plan, PlanDelta, ServicePortPlan } from '../index.ts';
import { sameNodePlan } from '../index.ts';
import { type IptablesTool, iptablesTool } from '../rules/index.ts';
import { cleanupIpvs } from './cleanup.ts';
import { fixedRules } from './compile/rules.ts';
import { type Changes, everything, NO_CHANGES, planChanges } from './diff/diff.ts';
import { Draining, drainStep } from './diff/drain.ts';
import { Layout, nothingTouched, type Touched, union } from './diff/layout.ts';
import type { KernelState, MutableState } from './diff/state.ts';
import { applyChanges, nothingWritten, WRITTEN_KINDS, type Written } from './kernel/apply.ts';
import type { IpvsKernel } from './kernel/kernel.ts';
import { openIpvsKernel } from './kernel/netlink-kernel.ts';
import { type Ownership, readState } from './kernel/read-state.ts';
import { removeRules, restoreRules, ruleDrift } from './kernel/rules-state.ts';
import type { IpvsDataplaneOptions } from './options.ts';
import { readTraffic, type ServiceTraffic } from './traffic.ts';
import { findDrift } from './verify.ts';

const GRACE_PERIOD_MS = 15 * 60_000;
/** How often it is looked whether the connections of drained destinations are over. */
const LOOK_INTERVAL_MS = 1000;

/** What is known to be in the kernel, and the layout it was made from. */
interface Committed {
  /** Undefined while everything retires. */
  readonly node: NodePlan | undefined;
  readonly layout: Layout;
  readonly state: MutableState;
  readonly nodePortAddresses: readonly IpAddress[];
  readonly rules: number;
}

/** Services as virtual servers of IPVS, with ipsets and a few iptables rules for what IPVS does not decide. */
export class IpvsDataplane implements Dataplane {
  readonly mode = 'ipvs';
  readonly family: IpFamily;
  readonly #clock: Clock;
  readonly #scheduler: string;
  readonly #gracePeriodMs: number;
  readonly #tool: IptablesTool;
  readonly #kernel: IpvsKernel;
  readonly #ownership: Ownership;
  /** Keys of the virtual servers this process made, whatever becomes of the sets that say so too. */
  readonly #made = new Set<string>();
  readonly #draining = new Draining();
  /** When what is being drained is looked at. */
  #timer: Timer | undefined;
  #closed = false;
  /** While a sync is under way, nothing else may change the kernel. */
  #busy = false;
  /** A look at what is being drained that is under way: a sync waits for its end. */
  #looking: Promise<void> | undefined;
  /** The layout of the last sync that succeeded. */
  #served: Layout | undefined;
  /** Undefined before the first resync and after a failure: the kernel may hold the old or the new state. */
  #committed: Committed | undefined;
  /** Ports the kernel refuses, by key: not programmed until they change or everything is tried again. */
  readonly #refused = new Map<string, LeftOutPort>();

  /** Opens netlink sockets in the network namespace of the calling thread. Throws as `openIpvsKernel`. */
  constructor(options: IpvsDataplaneOptions) {
    const { family, variant, exec = runProgram, clock = systemClock, gracePeriodMs = GRACE_PERIOD_MS } = options;
    this.family = family;
    this.#clock = clock;
    this.#scheduler = options.scheduler || 'rr';
    this.#gracePeriodMs = gracePeriodMs;
    this.#tool = iptablesTool(family, variant, exec);
    this.#kernel = options.kernel ?? openIpvsKernel(family);
    this.#ownership = { excludeCidrs: options.excludeCidrs ?? [], made: this.#made };
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    if (this.#looking) await this.#looking;
    const committed = this.#committed;
    // What is the same for all Services changed: all of them may have to change.
    if (!committed?.node || !sameNodePlan(committed.node, plan.node)) return this.resync(plan);
    return this.#alone(() => this.#syncWith(committed, plan, delta));
  }

  async #syncWith(committed: Committed, plan: Plan, delta: PlanDelta): Promise<Commit> {
    // Should anything throw from here on, the layout is ahead of the kernel.
    this.#committed = undefined;
    const { layout } = committed;
    for (const port of [...delta.removed, ...delta.upserted]) this.#refused.delete(port.key);
    for (const port of delta.removed) layout.remove(port.key);
    const rest = yielder();
    for (const port of delta.upserted) {
      await this.#layOut(layout, port, rest);
      await rest();
    }
    const total = await inSlices(this.#applyTouched(committed, layout.takeTouched()), rest);
    // Somebody changed what is ours: it has to be read anew.
    if (!total) return this.#makeEqual(plan);
    this.#committed = committed;
    return this.#commitOf(committed, total, 0);
  }

  async resync(plan: Plan): Promise<Commit> {
    if (this.#looking) await this.#looking;
    this.#refused.clear();
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
    const rules = await ruleDrift(this.#tool, fixedRules(this.family, committed.node));
    if (this.#looking) await this.#looking;
    // What is drained meanwhile would look like drift.
    return this.#alone(async () => {
      const wrong = kernel.wrong().map((object): Drift => ({ object, difference: 'missing' }));
      const found = await inSlices(readState(kernel, this.#ownership));
      const addresses = nodePortAddressesOf(committed.node!, found);
      return [...rules, ...wrong, ...findDrift(committed, found, addresses)];
    });
  }

  async cleanup(): Promise<void> {
    this.#committed = undefined;
    this.#timer?.cancel();
    await cleanupIpvs({ tool: this.#tool, kernel: this.#kernel, ...this.#ownership });
  }

  /**
   * Gives way to another mode, whose rules stand: as `cleanup`, but lets open connections finish. Virtual servers get
   * nothing new, and go with the last of their connections or when the grace period is over.
   *
   * @returns when nothing is left; what goes on until then ends with `close`
   * @throws ERR_IPTABLES; KernelError for what the kernel refuses
   */
  async retire(): Promise<void> {
    this.#committed = undefined;
    await removeRules(this.#tool);
    if (this.#looking) await this.#looking;
    const state = await inSlices(readState(this.#kernel, this.#ownership));
    const layout = new Layout({
      nodePortAddresses: [],
      nodeIp: undefined,
      scheduler: 'rr',
      masqueradeMark: 0,
    });
    const retiring: Committed = { node: undefined, layout, state, nodePortAddresses: [], rules: 0 };
    if (!(await inSlices(this.#applyTouched(retiring, everything(layout, state))))) return this.retire();
    this.#committed = retiring;
    while (this.#draining.size > 0 && !this.#closed) {
      await new Promise<void>((resolve) => this.#clock.setTimer(resolve, LOOK_INTERVAL_MS));
    }
    if (!this.#closed) this.#kernel.removeAll();
  }

  /** What each Service has carried, by its name; nothing before the first sync. Throws KernelError. */
  traffic(): ReadonlyMap<string, ServiceTraffic> {
    return this.#served ? readTraffic(this.#kernel, this.#served) : new Map();
  }

  /** Ends what goes on between the syncs; the kernel stays as it is. What is being drained then stays until the next start. */
  close(): void {
    this.#timer?.cancel();
    this.#closed = true;
    this.#kernel.close();
  }

  async #makeEqual(plan: Plan): Promise<Commit> {
    this.#committed = undefined;
    const started = performance.now();
    this.#kernel.prepare();
    const rest = yielder();
    const state = await inSlices(readState(this.#kernel, this.#ownership), rest);
    const readSeconds = secondsSince(started);
    const nodePortAddresses = nodePortAddressesOf(plan.node, state);
    const layout = new Layout({
      nodePortAddresses,
      nodeIp: plan.node.nodeIp,
      scheduler: this.#scheduler,
      masqueradeMark: plan.node.masqueradeMark,
    });
    for (const port of plan.ports.values()) {
      if (!this.#refused.has(port.key)) await this.#layOut(layout, port, rest);
      await rest();
    }
    layout.takeTouched();
    const rules = fixedRules(this.family, plan.node);
    const next: Committed = { node: plan.node, layout, state, nodePortAddresses, rules: rules.count };
    const total = await inSlices(this.#applyTouched(next, everything(layout, state)), rest);
    if (!total) {
      const message =
        'The virtual servers changed while they were brought in line with the plan; the next sync tries again';
      throw new NodeplaneError('ERR_DATAPLANE', message);
    }
    const restoring = performance.now();
    // They lead packets to what stands by now.
    const written = await restoreRules(this.#tool, rules);
    const kernelSeconds = readSeconds + total.kernelSeconds + secondsSince(restoring);
    this.#committed = next;
    this.#served = layout;
    return this.#commitOf(next, { ...total, kernelSeconds }, written);
  }

  /** A Service port that cannot be laid out is left out. */
  async #layOut(layout: Layout, port: ServicePortPlan, rest: ReturnType<typeof yielder>): Promise<void> {
    try {
      await inSlices(layout.upsert(port), rest);
    } catch (error) {
      if (!(error instanceof NodeplaneError)) throw error;
      this.#refused.set(port.key, { key: port.key, name: port.name, reason: error.message });
      layout.remove(port.key);
    }
  }

  #leaveOut(layout: Layout, key: string, reason: string): void {
    this.#refused.set(key, { key, name: layout.ports.get(key)?.name ?? key, reason });
    layout.remove(key);
  }

  /**
   * Makes what was touched equal to the layout. Service ports the kernel refuses are left out, and what they had is taken
   * away again.
   *
   * @returns undefined when the kernel is not as we thought
   * @throws KernelError when something is refused that no Service port is to blame for
   */
  *#applyTouched({ layout, state }: Committed, first: Touched): Steps<Done | undefined> {
    const kernel = this.#kernel;
    const draining = this.#draining;
    const made = this.#made;
    const done: Done = { written: nothingWritten(), kernelSeconds: 0 };
    let touched = first;
    for (;;) {
      const changes = yield* planChanges(layout, state, draining, touched);
      for (const [key, reason] of changes.conflicts) this.#leaveOut(layout, key, reason);
      if (changes.conflicts.size > 0) {
        touched = union(touched, layout.takeTouched());
        continue;
      }
      const applied = yield* applyChanges({ kernel, state, draining, made, now: this.#clock.now() }, changes);
      for (const kind of WRITTEN_KINDS) done.written[kind] += applied.written[kind];
      done.kernelSeconds += applied.kernelSeconds;
      this.#lookLater();
      if (applied.stale) return undefined;
      if (applied.failed) throw applied.failed;
      if (applied.refused.size === 0) return done;
      for (const [key, { message }] of applied.refused) this.#leaveOut(layout, key, message);
      touched = layout.takeTouched();
    }
  }

  /** Has what is being drained looked at in a while. */
  #lookLater(): void {
    if (this.#draining.size === 0 || this.#timer || this.#looking || this.#closed) return;
    this.#timer = this.#clock.setTimer(() => {
      this.#timer = undefined;
      if (this.#looking) return;
      const look = this.#look();
      this.#looking = look
        .catch(() => {})
        .finally(() => {
          this.#looking = undefined;
          this.#lookLater();
        });
      return look;
    }, LOOK_INTERVAL_MS);
  }

  async #look(): Promise<void> {
    const committed = this.#committed;
    // A sync that is under way has planned with what is there now.
    if (this.#busy || !committed) return;
    try {
      await inSlices(this.#lookAtDrained(committed));
    } catch (error) {
      // What the kernel refuses for good the next resync tells.
      this.#committed = undefined;
      throw error;
    }
  }

  *#lookAtDrained(committed: Committed): Steps<void> {
    const kernel = this.#kernel;
    const draining = this.#draining;
    const gracePeriodMs = this.#gracePeriodMs;
    const now = this.#clock.now();
    const touched = nothingTouched();
    for (const [server, entry] of [...draining.servers]) {
      yield;
      if (!committed.state.servers.has(server)) {
        // Somebody else removed it, and a full sync has noticed.
        draining.forget(server);
        continue;
      }
      const { remove, gone } = drainStep(entry, kernel.listDestinations(entry.key), now, gracePeriodMs);
      const steps = remove.length > 0 ? [remove] : [];
      const ended = [...remove.map(({ endpoint }) => endpoint), ...gone].map((each) => [server, each] as const);
      const changes: Changes = { ...NO_CHANGES, steps, revived: ended };
      for (const endpoint of gone) committed.state.forgetDestination(entry.key, endpoint);
      yield* applyChanges({ kernel, state: committed.state, draining, made: this.#made, now }, changes);
      if (!entry.retired) continue;
      touched.servers.add(server);
      if (entry.key.kind === 'address') touched.addresses.add(formatIp(entry.key.address));
    }
    yield* this.#applyTouched(committed, touched);
  }

  #commitOf({ state, rules }: Committed, { written, kernelSeconds }: Done, rulesWritten: number): Commit {
    const leftOut = [...this.#refused.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
    const objects = {
      servers: { total: state.servers.size, written: written.servers },
      destinations: { total: state.destinationCount, written: written.destinations },
      elements: { total: state.elements.size, written: written.elements },
      addresses: { total: state.bound.size, written: written.addresses },
      rules: { total: rules, written: rulesWritten },
    };
    return { kernelSeconds, objects, leftOut };
  }
}

interface Done {
  readonly written: Written;
  kernelSeconds: number;
}

/**
 * The addresses NodePorts answer at. `all`: those of the node's interfaces, kube-ipvs0, loopback and IPv6 link-local ones
 * excepted, as in kube-proxy.
 */
function nodePortAddressesOf({ nodePortAddresses }: NodePlan, { elsewhere }: KernelState): readonly IpAddress[] {
  if (nodePortAddresses === 'all') return [...elsewhere.values()].sort(compareIp);
  return nodePortAddresses.filter((ip) => !isLoopback(ip));
}

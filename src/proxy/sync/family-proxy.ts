import { isDeepStrictEqual } from 'node:util';
import {
  type Drift,
  errorText,
  type IpFamily,
  nothingToCompare,
  type Steps,
  type SyncCheck,
  SyncRunner,
  tellFailure,
  yielder,
} from '../../core/index.ts';
import { API_SERVER_SERVICE, type ExplainedPort, Planner, type PlanUpdate, sameNodePlan } from '../plan/index.ts';
import { type Change, PendingChanges } from './changes.ts';
import type { Commit, LeftOutPort } from './dataplane.ts';
import type { ProxyEventBody } from './events.ts';
import type { FamilyProxyOptions } from './family-proxy-options.ts';
import { fewServices } from './few-services.ts';
import { KnownNode } from './known-node.ts';
import { leftOutDrift } from './left-out.ts';

/**
 * One family put together: objects change -> the Services concerned are planned again -> the difference goes to the
 * dataplane, at the pace of the runner. Nothing is written before `start`.
 */
export class FamilyProxy {
  readonly #options: FamilyProxyOptions;
  readonly #family: IpFamily;
  readonly #changes: PendingChanges;
  readonly #planner: Planner;
  readonly #runner: SyncRunner;
  readonly #node: KnownNode;
  #started = false;
  /** What the current run is at, and since when: told if it fails. */
  #stage: 'plan' | 'commit' = 'plan';
  #runBegan = 0;
  #leftOut: readonly LeftOutPort[] = [];
  /** Why the last plan is not what the kernel is to hold; undefined: it is. */
  #notInForce: string | undefined = 'nothing was written yet';

  constructor(options: FamilyProxyOptions) {
    const { clock, dataplane, nodeName, verifyIntervalMs } = options;
    this.#options = options;
    this.#family = dataplane.family;
    this.#changes = new PendingChanges(clock.wallTime());
    this.#node = new KnownNode(options, this.#family, (error) => {
      this.#tell({ kind: 'workFailed', work: 'address listing', error });
    });
    // The addresses come with the first sync, which is made in full.
    const { node, zone } = this.#node.plan([]);
    this.#planner = new Planner({
      family: this.#family,
      nodeName,
      externalIps: options.externalIps ?? true,
      hint: options.hint,
      node,
      zone,
      addressRules: this.#node.rules,
      ...(options.pauses && { pauses: options.pauses }),
    });
    this.#runner = new SyncRunner({
      ...options,
      name: `Services ${this.#family}`,
      run: (full) => this.#run(full),
      check: verifyIntervalMs === undefined ? undefined : this.#check(verifyIntervalMs),
      failed: (error, full, retryInMs) => {
        this.#notInForce = `the last sync failed: ${errorText(error)}`;
        const seconds = this.#secondsSince(this.#runBegan);
        this.#tell({ kind: 'syncFailed', full, seconds, error, stage: this.#stage, retryInMs });
      },
    });
  }

  /** The plan as it is now, synced or not. */
  get plan(): Planner['plan'] {
    return this.#planner.plan;
  }

  /** What load balancers ask this node, by Service name, as planned now; take it over after a successful sync. */
  get healthChecks(): Planner['healthChecks'] {
    return this.#planner.healthChecks;
  }

  /** The ports of a Service with all of its endpoints, and why each of them is used or not, by its objects as they are now. */
  explain(serviceName: string): Steps<readonly ExplainedPort[]> {
    return this.#planner.explain(serviceName, this.#options.store);
  }

  /** Whether something new of a Service is on its way into the kernel, or its flows are being cleaned after it. */
  isUnwritten(serviceName: string): boolean {
    return this.#changes.has(serviceName);
  }

  /** Begins to sync. Call it when the store holds everything: what is not in it then is removed from the kernel. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#tell({ kind: 'started' });
    this.#tell({ kind: 'queued', reason: 'start' });
    this.#runner.start();
  }

  /** Waits for the sync in flight and makes no more; the kernel stays as it is. */
  async stop(): Promise<void> {
    this.#started = false;
    await this.#runner.stop();
  }

  /**
   * Says that the store has something new about these Services (two when a slice moved from one to another).
   * The change itself comes from `changeOf`.
   */
  touch(serviceNames: Iterable<string>, change: Change): void {
    this.#changes.add(serviceNames, change);
    this.#tell({ kind: 'changed', object: change.kind, pending: this.#changes.counts });
    if (!this.#started) return;
    this.#tell({ kind: 'queued', reason: 'change' });
    this.#runner.request();
  }

  /** Says that the store has something new about Nodes or ServiceCIDRs: their addresses may be no Service's. */
  addressesChanged(): void {
    this.#node.outdateRules();
    if (!this.#started) return;
    this.#tell({ kind: 'queued', reason: 'node' });
    this.#runner.request();
  }

  /** Looks at the Node object, the ServiceCIDRs and the local addresses again; a full sync follows if they matter. */
  nodeChanged(): void {
    // Without any addresses the first sync has yet to succeed, and looks for itself.
    if (!this.#started || !this.#node.hasAddresses) return;
    const { node, zone } = this.#node.plan(this.#node.listAddresses());
    if (this.#node.wouldChangeRules()) this.addressesChanged();
    if (zone === this.#planner.zone && sameNodePlan(node, this.#planner.plan.node)) return;
    this.#tell({ kind: 'queued', reason: 'node' });
    this.#runner.requestFull();
  }

  /** Has the kernel compared with what was committed now; a full sync follows if it differs. */
  verify(): void {
    if (this.#started) this.#runner.requestCheck();
  }

  /**
   * In what the kernel differs from what is meant, what it refuses included; between the syncs, and nothing is changed.
   *
   * @throws ERR_DIFF when what is meant is not in force; errors of reading the kernel
   */
  compare(): Promise<readonly Drift[]> {
    const { dataplane } = this.#options;
    return this.#runner.between(async () => {
      if (this.#notInForce !== undefined) throw nothingToCompare(`Services ${this.#family}`, this.#notInForce);
      const drifts = await (dataplane.compare?.() ?? dataplane.verify());
      return [...leftOutDrift(this.#leftOut), ...drifts];
    });
  }

  /** Makes the kernel what is meant; resolves when it is. Rejects with what makes the sync fail. */
  repair(): Promise<void> {
    if (this.#started) this.#tell({ kind: 'queued', reason: 'request' });
    return this.#runner.runFull();
  }

  /** Asks for a full sync, for example because there are ports that were left out without having been tried. */
  resync(): void {
    if (!this.#started) return;
    this.#tell({ kind: 'queued', reason: 'request' });
    this.#runner.requestFull();
  }

  async #run(full: boolean): Promise<void> {
    this.#stage = 'plan';
    this.#runBegan = this.#options.clock.now();
    const { serviceNames, triggerTimes } = this.#changes.take();
    let isWhole = false;
    try {
      this.#tell({ kind: 'syncStarted', full });
      const { delta } = await (full ? this.#planAll() : this.#plan(serviceNames));
      const deltaSize = delta.upserted.length + delta.removed.length;
      this.#stage = 'commit';
      const { dataplane, flows } = this.#options;
      // A full plan has used the slice of this turn, and whoever is told of the change looks at all of it.
      if (full) await yielder(0)();
      flows?.note(delta);
      let commit: Commit | undefined;
      if (full) commit = await dataplane.resync(this.#planner.plan);
      else if (deltaSize > 0) commit = await dataplane.sync(this.#planner.plan, delta);
      // A delta of all, as that of the first sync is, says it already.
      isWhole = (full || commit?.isWhole === true) && delta.upserted.length < this.#planner.plan.ports.size;
      if (commit) this.#reportLeftOut(commit.leftOut ?? []);
      this.#notInForce = undefined;
      const seconds = this.#secondsSince(this.#runBegan);
      const { noLocalEndpoints, restrictedServices } = this.#planner;
      this.#tell({
        kind: 'syncFinished',
        full,
        seconds,
        commit,
        deltaSize,
        services: fewServices(delta),
        triggerTimes,
        noLocalEndpoints,
        restrictedServices,
      });
    } catch (error) {
      this.#changes.giveBack(triggerTimes);
      this.#changes.settle();
      throw error;
    }
    await this.#cleanFlows(isWhole);
    this.#changes.settle();
  }

  async #cleanFlows(isWhole: boolean): Promise<void> {
    try {
      await this.#options.flows?.clean(this.#planner.plan, () => this.#node.listAddresses(), isWhole);
    } catch (error) {
      this.#tell({ kind: 'workFailed', work: 'flow cleaning', error });
    }
  }

  #check(intervalMs: number): SyncCheck {
    return {
      intervalMs,
      run: () => this.#verify(),
      failed: (error) => this.#tell({ kind: 'verifyFailed', error }),
    };
  }

  async #verify(): Promise<void> {
    // Local addresses come and go without an event; NodePorts follow them.
    this.nodeChanged();
    if (this.#leftOut.some(({ untried }) => untried)) return this.resync();
    const drifts = await this.#options.dataplane.verify();
    if (!this.#started) return;
    if (drifts.length === 0) return this.#tell({ kind: 'verified' });
    this.#tell({ kind: 'driftFound', drifts });
    this.#tell({ kind: 'queued', reason: 'drift' });
    this.#runner.requestFull();
  }

  async #planAll(): Promise<PlanUpdate> {
    const { node, zone } = this.#node.plan(this.#node.listAddresses());
    this.#planner.setNode(node, zone);
    this.#renewAddressRules();
    return this.#report(await this.#planner.rebuild(this.#options.store));
  }

  async #plan(serviceNames: readonly string[]): Promise<PlanUpdate> {
    const names = new Set(serviceNames);
    const outdated = this.#node.areRulesOutdated || names.has(API_SERVER_SERVICE);
    if (outdated) this.#node.listAddresses();
    if (outdated && this.#renewAddressRules()) {
      for (const name of this.#planner.ruledServiceNames()) names.add(name);
    }
    return this.#report(await this.#planner.update(names, this.#options.store));
  }

  /** @returns whether they refuse anything else now */
  #renewAddressRules(): boolean {
    if (!this.#node.renewRules()) return false;
    this.#planner.setAddressRules(this.#node.rules);
    return true;
  }

  #report(update: PlanUpdate): PlanUpdate {
    for (const problem of update.problems) this.#tell({ kind: 'serviceProblem', ...problem });
    for (const troubles of update.troubles) this.#tell({ kind: 'portTroubles', ...troubles });
    return update;
  }

  #reportLeftOut(ports: readonly LeftOutPort[]): void {
    if (isDeepStrictEqual(ports, this.#leftOut)) return;
    this.#leftOut = ports;
    this.#tell({ kind: 'leftOut', ports });
  }

  #secondsSince(began: number): number {
    return (this.#options.clock.now() - began) / 1000;
  }

  #tell(body: ProxyEventBody): void {
    const { clock, observers } = this.#options;
    const event = { family: this.#family, at: clock.wallTime(), ...body };
    for (const observer of observers) {
      try {
        observer(event);
      } catch (error) {
        tellFailure('observer', error);
      }
    }
  }
}

import type { Drift, IpFamily } from '../../src/core/index.ts';
import {
  type Commit,
  type Dataplane,
  type LeftOutPort,
  LeftOutPorts,
  type Plan,
  type PlanDelta,
  type ServicePortPlan,
  sameNodePlan,
  samePortPlan,
} from '../../src/proxy/index.ts';

/** One call as it came in, with what the dataplane was shown at that moment. */
export interface DataplaneCall {
  readonly method: 'sync' | 'resync';
  /** Keys of the delta; empty for a resync. */
  readonly upserted: readonly string[];
  readonly removed: readonly string[];
  readonly planKeys: readonly string[];
  readonly node: Plan['node'];
}

/**
 * A dataplane whose kernel is a Map. It holds callers to the contract of `Dataplane` and throws when they break it:
 * calls must not overlap, a delta must agree with its plan and cover every difference to the last commit, and after a
 * failure only `resync` will do.
 */
export class FakeDataplane implements Dataplane {
  readonly family: IpFamily;
  readonly calls: DataplaneCall[] = [];
  /** What the kernel holds. */
  readonly kernel: Map<string, ServicePortPlan>;
  /** How many ports were written to the kernel or removed from it. */
  writes = 0;
  /** Refuses a port for the reason given. */
  refuse: (port: ServicePortPlan) => string | undefined = () => undefined;
  /** What `verify` finds. */
  drift: readonly Drift[] = [];
  /** How often `verify` was called. */
  verifications = 0;
  /** What commits say they left out, besides what was refused. */
  leftOut: readonly LeftOutPort[] = [];
  readonly #refused = new LeftOutPorts();
  /** The ports of the last commit, those left out too. */
  #committed: ReadonlyMap<string, ServicePortPlan> = new Map();
  #node: Plan['node'] | undefined;
  #failures: unknown[] = [];
  #inCall = false;
  #needsResync = true;
  #held: Promise<void> | undefined;

  /** @param kernel what is in the kernel already. @default nothing */
  constructor(family: IpFamily = 'IPv4', kernel: Map<string, ServicePortPlan> = new Map()) {
    this.family = family;
    this.kernel = kernel;
  }

  /** Makes the next call fail, after it has done half of its work. */
  failNext(error: unknown = new Error('The fake kernel refuses')): void {
    this.#failures.push(error);
  }

  /** Makes calls wait until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = withResolvers();
    this.#held = promise;
    return () => {
      this.#held = undefined;
      resolve();
    };
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    if (this.#needsResync) throw new ContractBroken('sync was called where only resync will do');
    checkDelta(plan, delta, this.#committed);
    this.#record('sync', plan, delta);
    return this.#commit(plan, delta, delta.upserted.length);
  }

  async resync(plan: Plan): Promise<Commit> {
    const delta = {
      upserted: [...plan.ports.values()],
      removed: [...this.kernel.values()].filter((port) => !plan.ports.has(port.key)),
    };
    this.#record('resync', plan, { upserted: [], removed: [] });
    this.#node = plan.node;
    this.#refused.forgetAll();
    const commit = await this.#commit(plan, delta, plan.ports.size);
    this.drift = [];
    return commit;
  }

  /** Tells the drift that was set; a resync repairs it. */
  async verify(): Promise<readonly Drift[]> {
    if (this.#inCall) throw new ContractBroken('two calls overlap');
    this.#inCall = true;
    this.verifications++;
    try {
      if (this.#held) await this.#held;
      if (this.#failures.length > 0) throw this.#failures.shift();
      return this.drift;
    } finally {
      this.#inCall = false;
    }
  }

  async cleanup(): Promise<void> {
    this.kernel.clear();
    this.#committed = new Map();
    this.#needsResync = true;
  }

  async #commit(plan: Plan, delta: PlanDelta, written: number): Promise<Commit> {
    if (this.#inCall) throw new ContractBroken('two calls overlap');
    if (this.#node && !sameNodePlan(this.#node, plan.node)) {
      throw new ContractBroken('the node plan changed without a resync');
    }
    this.#inCall = true;
    try {
      if (this.#held) await this.#held;
      this.#refused.forget(delta);
      for (const { key } of delta.removed) this.#remove(key);
      if (this.#failures.length > 0) {
        this.#needsResync = true;
        throw this.#failures.shift();
      }
      for (const port of delta.upserted) this.#write(port);
      this.#committed = new Map(plan.ports);
      this.#needsResync = false;
      return {
        kernelSeconds: 0,
        objects: { nat: { total: this.kernel.size, written } },
        leftOut: [...this.leftOut, ...this.#refused.list()],
      };
    } finally {
      this.#inCall = false;
    }
  }

  #write(port: ServicePortPlan): void {
    const { key, name } = port;
    const reason = this.refuse(port);
    if (reason !== undefined) {
      this.#refused.add({ key, name, reason });
      this.#remove(key);
      return;
    }
    const present = this.kernel.get(key);
    if (!present || !samePortPlan(present, port)) this.writes++;
    this.kernel.set(key, port);
  }

  #remove(key: string): void {
    if (this.kernel.delete(key)) this.writes++;
  }

  #record(method: DataplaneCall['method'], plan: Plan, delta: PlanDelta): void {
    this.calls.push({
      method,
      upserted: delta.upserted.map((port) => port.key),
      removed: delta.removed.map((port) => port.key),
      planKeys: [...plan.ports.keys()],
      node: plan.node,
    });
  }
}

/** The caller is wrong, not the kernel. */
export class ContractBroken extends Error {}

function checkDelta(plan: Plan, delta: PlanDelta, committed: ReadonlyMap<string, ServicePortPlan>): void {
  const upserted = new Set(delta.upserted.map((port) => port.key));
  const removed = new Set(delta.removed.map((port) => port.key));
  for (const port of delta.upserted) {
    if (plan.ports.get(port.key) !== port) throw new ContractBroken(`"${port.key}" is upserted but not in the plan`);
  }
  for (const key of removed) {
    if (plan.ports.has(key)) throw new ContractBroken(`"${key}" is removed but still in the plan`);
    if (!committed.has(key)) throw new ContractBroken(`"${key}" is removed but was never committed`);
  }
  for (const [key, port] of plan.ports) {
    const before = committed.get(key);
    if (!upserted.has(key) && !(before && samePortPlan(before, port))) {
      throw new ContractBroken(`"${key}" differs from the last commit but the delta does not say so`);
    }
  }
  for (const key of committed.keys()) {
    if (!plan.ports.has(key) && !removed.has(key)) {
      throw new ContractBroken(`"${key}" is gone from the plan but the delta does not say so`);
    }
  }
}

function withResolvers(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

import { type Drift, type IpFamily, yielder } from '../../core/index.ts';
import type { Protocol } from '../../kube/index.ts';
import type { Commit, Dataplane, Plan, PlanDelta } from '../index.ts';
import type { NodePort } from './node-port.ts';
import { PlannedNodePorts } from './planned-node-ports.ts';
import type { LocalhostRules } from './rules.ts';

/** How NodePorts at localhost are doing in one family. */
export interface LocalhostState {
  readonly family: IpFamily;
  /** How many answer. */
  readonly served: number;
  /** The kernel could not be brought in line, and why; it is tried again. */
  readonly error?: unknown;
  /** Somebody else had changed or removed the rules, which are as they should be again. */
  readonly repaired?: boolean;
}

export interface LocalhostDataplaneOptions {
  /** What makes Services work. */
  readonly dataplane: Dataplane;
  /** NodePorts of others do not answer at localhost. */
  readonly protocols: readonly Protocol[];
  readonly rules: Pick<LocalhostRules, 'makeEqual' | 'drift' | 'change' | 'remove' | 'close'>;
  /** Told after each time the kernel was looked at or changed. */
  readonly told: (state: LocalhostState) => void;
}

/**
 * A dataplane whose NodePorts answer the node's own processes at loopback addresses too, where the plan asks for it
 * (`loopbackNodePorts`). It follows the one that makes Services work: what is not translated yet, or no more, is refused.
 *
 * A failure here is no failure of the sync: it is told, and the kernel looked at again with the next sync or verification.
 */
export class LocalhostDataplane implements Dataplane {
  readonly family: IpFamily;
  readonly #dataplane: Dataplane;
  readonly #rules: LocalhostDataplaneOptions['rules'];
  readonly #protocols: readonly Protocol[];
  readonly #told: LocalhostDataplaneOptions['told'];
  /** Undefined while there shall be no such NodePorts. */
  #ports: PlannedNodePorts | undefined;
  /** The kernel may not hold what it should. */
  #isUncertain = true;

  constructor({ dataplane, protocols, rules, told }: LocalhostDataplaneOptions) {
    this.family = dataplane.family;
    this.#dataplane = dataplane;
    // Associations of SCTP do not come about at ::1 (tried on Linux 6.1).
    this.#protocols = protocols.filter((protocol) => protocol !== 'SCTP' || this.family === 'IPv4');
    this.#rules = rules;
    this.#told = told;
  }

  async sync(plan: Plan, delta: PlanDelta): Promise<Commit> {
    const commit = await this.#dataplane.sync(plan, delta);
    const ports = this.#ports;
    if (ports) {
      const { added, removed } = ports.take(delta);
      if (this.#isUncertain) await this.#makeEqual();
      else if (added.length + removed.length > 0) await this.#change(added, removed);
    }
    return commit;
  }

  async resync(plan: Plan): Promise<Commit> {
    const commit = await this.#dataplane.resync(plan);
    // The end of a full sync may have used the slice of this turn.
    await yielder()();
    this.#ports = plan.node.loopbackNodePorts ? new PlannedNodePorts(plan.ports.values(), this.#protocols) : undefined;
    this.#isUncertain = true;
    // The first look at the kernel opens sockets.
    await yielder(0)();
    await this.#makeEqual();
    return commit;
  }

  async verify(): Promise<readonly Drift[]> {
    const drifts = await this.#dataplane.verify();
    if (this.#ports || this.#isUncertain) await this.#makeEqual();
    return drifts;
  }

  async compare(): Promise<readonly Drift[]> {
    const drifts = await this.#dataplane.verify();
    return [...drifts, ...(this.#ports ? await this.#rules.drift(this.#ports.all) : [])];
  }

  async cleanup(): Promise<void> {
    this.#ports = undefined;
    await this.#dataplane.cleanup();
    this.#rules.remove();
  }

  async close(): Promise<void> {
    await this.#dataplane.close?.();
    this.#rules.close();
  }

  async #change(added: readonly NodePort[], removed: readonly NodePort[]): Promise<void> {
    this.#isUncertain = true;
    try {
      await this.#rules.change(added, removed);
      this.#isUncertain = false;
      this.#told({ family: this.family, served: this.#ports!.size });
    } catch {
      // Somebody removed the table, most likely; if not, this fails too and says why.
      await this.#makeEqual({ wasCertain: true });
    }
  }

  #makeEqual({ wasCertain } = { wasCertain: !this.#isUncertain }): Promise<void> {
    const ports = this.#ports;
    return this.#attempt(async () => {
      if (ports) return (await this.#rules.makeEqual(ports.all)) && wasCertain;
      this.#rules.remove();
      return false;
    });
  }

  /** @param act true: it repaired something */
  async #attempt(act: () => Promise<boolean>): Promise<void> {
    const { family } = this;
    try {
      const repaired = await act();
      this.#isUncertain = false;
      this.#told({ family, served: this.#ports?.size ?? 0, repaired });
    } catch (error) {
      // A look at the kernel that failed says nothing about what is in it.
      this.#told({ family, served: this.#isUncertain ? 0 : (this.#ports?.size ?? 0), error });
    }
  }
}

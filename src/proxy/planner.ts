import { errorText, type IpFamily } from '../core/index.ts';
import { planService, type ServicePlan } from './plan.ts';
import { samePortPlan } from './same-plan.ts';
import type { ServiceHealthCheck } from './service-health.ts';
import type { NodePlan, Plan, PlanDelta, ServicePortPlan } from './service-plan.ts';
import type { ServiceStore } from './service-store.ts';

/** What is new for one Service: the problems it has now; empty when the earlier ones are mended. */
export interface ServiceProblem {
  readonly serviceName: string;
  readonly problems: readonly string[];
}

/** Service ports that cannot be reached on this node because their policy is Local, by the policy that says so. */
export interface NoLocalEndpoints {
  readonly internal: number;
  readonly external: number;
}

/** What planning brought: what the dataplane has to do and what people should know. */
export interface PlanUpdate {
  readonly delta: PlanDelta;
  readonly problems: readonly ServiceProblem[];
}

export interface PlannerOptions {
  readonly family: IpFamily;
  readonly nodeName: string;
  /** Where the node is until `setNode` says otherwise. @default '' */
  readonly zone?: string;
  readonly node: NodePlan;
  /** Whether external IPs are served. @default true */
  readonly externalIps?: boolean;
}

/**
 * Holds the current plan of one family and moves it along with the objects. An update looks at the named Services
 * alone, whatever the size of the cluster.
 */
export class Planner {
  readonly #family: IpFamily;
  readonly #nodeName: string;
  readonly #externalIps: boolean;
  readonly #ports = new Map<string, ServicePortPlan>();
  readonly #services = new Map<string, ServicePlan>();
  readonly #healthChecks = new Map<string, ServiceHealthCheck>();
  readonly #noLocal = { internal: 0, external: 0 };
  #zone: string;
  #plan: Plan;

  constructor({ family, nodeName, zone = '', node, externalIps = true }: PlannerOptions) {
    this.#family = family;
    this.#nodeName = nodeName;
    this.#externalIps = externalIps;
    this.#zone = zone;
    this.#plan = { family, node, ports: this.#ports };
  }

  /** The plan as it is now. Its `ports` change with every update. */
  get plan(): Plan {
    return this.#plan;
  }

  get zone(): string {
    return this.#zone;
  }

  get noLocalEndpoints(): NoLocalEndpoints {
    return { ...this.#noLocal };
  }

  /** The health checks of the Services that have one, by Service name; live. */
  get healthChecks(): ReadonlyMap<string, ServiceHealthCheck> {
    return this.#healthChecks;
  }

  /** Moves the node; the caller must `rebuild` afterwards, because every Service may be affected. */
  setNode(node: NodePlan, zone: string): void {
    this.#zone = zone;
    this.#plan = { family: this.#family, node, ports: this.#ports };
  }

  /**
   * Plans the named Services again.
   *
   * A Service whose planning throws (an object of a shape nobody foresaw) is reported, and what was planned for it
   * before stays, so that one bad object never takes traffic from its own Service or any other.
   *
   * @returns what differs from before for a dataplane; empty when the change did not matter to this family
   */
  update(serviceNames: Iterable<string>, store: ServiceStore): PlanUpdate {
    const upserted: ServicePortPlan[] = [];
    const removed: ServicePortPlan[] = [];
    const replaced: ServicePortPlan[] = [];
    const problems: ServiceProblem[] = [];
    for (const serviceName of serviceNames) {
      const before = this.#services.get(serviceName);
      const after = this.#planOne(serviceName, before, store);
      this.#replace(before?.ports ?? [], after.ports, { upserted, removed, replaced });
      if (!sameTexts(before?.problems ?? [], after.problems)) problems.push({ serviceName, problems: after.problems });
      if (after.healthCheck) this.#healthChecks.set(serviceName, after.healthCheck);
      else this.#healthChecks.delete(serviceName);
      if (after.ports.length > 0 || after.problems.length > 0) this.#services.set(serviceName, after);
      else this.#services.delete(serviceName);
    }
    return { delta: { upserted, removed, replaced }, problems };
  }

  /** Plans every Service again, and drops those that are gone. */
  rebuild(store: ServiceStore): PlanUpdate {
    return this.update(new Set([...this.#services.keys(), ...store.serviceNames()]), store);
  }

  #planOne(serviceName: string, before: ServicePlan | undefined, store: ServiceStore): ServicePlan {
    try {
      const context = {
        ...{ family: this.#family, nodeName: this.#nodeName, zone: this.#zone },
        externalIps: this.#externalIps,
      };
      const service = store.service(serviceName);
      return planService(service, service ? store.slices(serviceName) : [], context);
    } catch (error) {
      const problems = [`The Service cannot be planned: ${errorText(error)}`];
      return { ...before, ports: before?.ports ?? [], problems };
    }
  }

  #replace(
    before: readonly ServicePortPlan[],
    after: readonly ServicePortPlan[],
    { upserted, removed, replaced }: Record<keyof PlanDelta, ServicePortPlan[]>,
  ): void {
    for (const old of before) {
      this.#count(old, -1);
      if (!after.some((port) => port.key === old.key)) {
        this.#ports.delete(old.key);
        removed.push(old);
      }
    }
    for (const port of after) {
      this.#count(port, +1);
      const old = this.#ports.get(port.key);
      // Stored even when equal for the kernel: the plan is also what people ask about.
      this.#ports.set(port.key, port);
      if (old && samePortPlan(old, port)) continue;
      upserted.push(port);
      if (old) replaced.push(old);
    }
  }

  #count(port: ServicePortPlan, step: 1 | -1): void {
    if (port.internalVerdict === 'drop') this.#noLocal.internal += step;
    if (port.externalVerdict === 'drop') this.#noLocal.external += step;
  }
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}

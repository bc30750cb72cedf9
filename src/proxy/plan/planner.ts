import { errorText, type IpFamily, inSlices, type Rest, type Steps, sameTexts, yielder } from '../../core/index.ts';
import { createdAtOf } from '../../kube/index.ts';
import type { AddressRules } from './bounds/address-rules.ts';
import { claimsOf, type DestinationClaim, DestinationOwners } from './bounds/destination-owners.ts';
import { EndpointBudget } from './bounds/endpoint-budget.ts';
import { RESTRICTIONS, type Restriction } from './bounds/findings.ts';
import { type ExplainedPort, explainService } from './explain-service.ts';
import type { ServiceStore } from './objects/service-store.ts';
import { type PlanContext, planPorts, planService, type ServicePlan } from './plan.ts';
import type { NoLocalEndpoints, PlanUpdate, RestrictedServices, ServiceProblem } from './plan-update.ts';
import { samePortPlan } from './same-plan.ts';
import type { ServiceHealthCheck } from './service-health.ts';
import type { NodePlan, Plan, ServicePortPlan } from './service-plan.ts';
import { type ServiceHint, type ServicePorts, servicePortsOf } from './service-port.ts';
import { type PortTroubles, TroubleBook } from './troubles/trouble-book.ts';

export interface PlannerOptions {
  readonly family: IpFamily;
  readonly nodeName: string;
  /** Where the node is until `setNode` says otherwise. @default '' */
  readonly zone?: string;
  readonly node: NodePlan;
  /** Whether external IPs are served. @default true */
  readonly externalIps?: boolean;
  /** Which addresses are no Service's, until `setAddressRules` says otherwise. @default none are refused */
  readonly addressRules?: AddressRules;
  /** What the mode in use reads of a Service for itself. @default nothing */
  readonly hint?: ServiceHint | undefined;
  /** Endpoints x ports of all Services together. @default LIMITS.endpointsOfNode */
  readonly endpointsOfNode?: number;
  /** Makes what is asked between the steps of one update. @default slices, between which the event loop runs */
  readonly pauses?: () => Rest;
}

/** What is known of a Service: what it asks for, and its plan with what it got. */
interface PlannedService {
  readonly claims: readonly DestinationClaim[];
  readonly plan: ServicePlan;
}

/** What one update gathers: how things were before, and what it has read. */
interface Update {
  readonly store: ServiceStore;
  readonly context: PlanContext;
  /** As `context`, for Services that have all they ask for: nobody looks for owners of their destinations. */
  readonly uncontested: PlanContext;
  /** By Service name, until it is planned. */
  readonly asked: Map<string, ServicePorts>;
  readonly former: Former;
}

/** How things were before an update, of all that it planned; the difference to how they are then is what it brought. */
interface Former {
  /** By key; undefined: there was no such port. */
  readonly ports: Map<string, ServicePortPlan | undefined>;
  /** By Service name. */
  readonly problems: Map<string, readonly string[]>;
}

const UNKNOWN: PlannedService = { claims: [], plan: { ports: [], problems: [] } };

/**
 * Holds the current plan of one family and moves it along with the objects. An update looks at the named Services, and at
 * those that get or lose a destination by them; at no others, whatever the size of the cluster. Updates must not overlap.
 */
export class Planner {
  readonly #family: IpFamily;
  readonly #nodeName: string;
  readonly #externalIps: boolean;
  readonly #hint: ServiceHint | undefined;
  readonly #pauses: () => Rest;
  readonly #ports = new Map<string, ServicePortPlan>();
  readonly #services = new Map<string, PlannedService>();
  readonly #healthChecks = new Map<string, ServiceHealthCheck>();
  readonly #troubles = new TroubleBook();
  readonly #owners = new DestinationOwners();
  readonly #budget: EndpointBudget;
  readonly #noLocal = { internal: 0, external: 0 };
  readonly #restricted: Record<Restriction, number> = { taken: 0, refused: 0, limit: 0 };
  #addressRules: AddressRules | undefined;
  #endpointCap: number;
  #zone: string;
  #plan: Plan;

  constructor(options: PlannerOptions) {
    const { family, nodeName, zone = '', node, externalIps = true, addressRules, endpointsOfNode } = options;
    this.#family = family;
    this.#nodeName = nodeName;
    this.#externalIps = externalIps;
    this.#hint = options.hint;
    this.#pauses = options.pauses ?? (() => yielder());
    this.#addressRules = addressRules;
    this.#budget = new EndpointBudget(endpointsOfNode);
    this.#endpointCap = this.#budget.cap;
    this.#zone = zone;
    this.#plan = { family, node, ports: this.#ports };
  }

  /** The plan as it is now. Its `ports` change with every update. */
  get plan(): Plan {
    return this.#plan;
  }

  /** Where the node is: label `topology.kubernetes.io/zone`; empty: not known. */
  get zone(): string {
    return this.#zone;
  }

  /** How many ports of the plan drop packets for want of an endpoint here. */
  get noLocalEndpoints(): NoLocalEndpoints {
    return { ...this.#noLocal };
  }

  /** Of how many Services a part is not served. */
  get restrictedServices(): RestrictedServices {
    return { ...this.#restricted };
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

  /** Changes which addresses are refused; the caller must `rebuild` afterwards, or `update` all `ruledServiceNames`. */
  setAddressRules(rules: AddressRules): void {
    this.#addressRules = rules;
  }

  /** The Services about which the address rules may say something else than those of before. */
  *ruledServiceNames(): Generator<string> {
    for (const [name, { claims, plan }] of this.#services) {
      const external = claims.some(({ kind }) => kind === 'externalIp' || kind === 'loadBalancerVip');
      const [port] = plan.ports;
      const refused = port && this.#addressRules?.clusterIpRefusal(port.clusterIp) !== undefined;
      if (external || refused || plan.restrictions?.has('refused')) yield name;
    }
  }

  /**
   * Plans the named Services again.
   *
   * The event loop is given back in between. What changes in the store meanwhile may be in the plan already or not: whoever
   * changed it has the Service updated again.
   *
   * A Service whose planning throws (an object of a shape nobody foresaw) is reported, and what was planned for it
   * before stays, so that one bad object never takes traffic from its own Service or any other.
   *
   * @returns what differs from before for a dataplane; empty when the change did not matter to this family
   */
  update(serviceNames: Iterable<string>, store: ServiceStore): Promise<PlanUpdate> {
    return inSlices(this.#update(serviceNames, store), this.#pauses());
  }

  *#update(serviceNames: Iterable<string>, store: ServiceStore): Steps<PlanUpdate> {
    const former: Former = { ports: new Map(), problems: new Map() };
    const work: Update = { store, asked: new Map(), former, ...this.#contexts() };
    // First who has what, then what everybody does with it.
    const affected = new Set(serviceNames);
    for (const serviceName of [...affected]) {
      this.#claim(serviceName, work, affected);
      yield;
    }
    yield* this.#planEach(affected, work);

    const capBefore = this.#endpointCap;
    this.#endpointCap = this.#budget.cap;
    if (this.#endpointCap !== capBefore) {
      const least = Math.min(this.#endpointCap, capBefore);
      const isTouched = ({ plan }: PlannedService) => (plan.endpointsWanted ?? 0) > least;
      yield* this.#planEach(
        [...this.#services].flatMap(([name, known]) => (isTouched(known) ? [name] : [])),
        { ...work, ...this.#contexts() },
      );
    }
    return yield* this.#differenceTo(former);
  }

  /** Plans every Service again, and drops those that are gone. */
  async rebuild(store: ServiceStore): Promise<PlanUpdate> {
    return this.update(this.#allNames(store), store);
  }

  /** Some of them twice. */
  *#allNames(store: ServiceStore): Generator<string> {
    yield* this.#services.keys();
    yield* store.serviceNames();
  }

  /** The planned ports of a Service with all of its endpoints, and why each of them is used or not. For people: it is not cheap. */
  *explain(serviceName: string, store: ServiceStore): Steps<readonly ExplainedPort[]> {
    const planned = this.#services.get(serviceName)?.plan.ports ?? [];
    const service = store.service(serviceName);
    if (!service || planned.length === 0) return [];
    return yield* explainService({ service, slices: store.slices(serviceName), planned }, this.#context());
  }

  /** Enters what a Service asks for now; of one that asks for nothing, and had nothing, there is nothing to plan. */
  #claim(serviceName: string, { store, asked, context }: Update, affected: Set<string>): void {
    const before = this.#services.get(serviceName);
    const service = store.service(serviceName);
    let claims: readonly DestinationClaim[] = [];
    try {
      if (service) {
        const ports = servicePortsOf(service, this.#family, context);
        if (!before && ports.ports.length === 0 && ports.problems.length === 0) {
          affected.delete(serviceName);
          return;
        }
        asked.set(serviceName, ports);
        claims = claimsOf(ports, createdAtOf(service.metadata.creationTimestamp));
      }
    } catch {
      // Planning will say so, and keep what there was.
      return;
    }
    const { claims: claimed, plan } = before ?? UNKNOWN;
    this.#owners.replace(claimed, claims, affected);
    this.#services.set(serviceName, { claims, plan });
  }

  *#planEach(names: Iterable<string>, work: Update): Steps<void> {
    for (const serviceName of names) {
      yield* this.#planOne(serviceName, work);
      yield;
    }
  }

  *#planOne(serviceName: string, work: Update): Steps<void> {
    const { former } = work;
    const known = this.#services.get(serviceName) ?? UNKNOWN;
    const { claims, plan: before } = known;
    const after = yield* this.#makePlan(serviceName, known, work);
    this.#replace(before.ports, after.ports, former);
    this.#countRestrictions(before, -1);
    this.#countRestrictions(after, +1);
    this.#budget.change(before.endpointsWanted ?? 0, after.endpointsWanted ?? 0);
    if (!former.problems.has(serviceName)) former.problems.set(serviceName, before.problems);
    if (after.healthCheck) this.#healthChecks.set(serviceName, after.healthCheck);
    else this.#healthChecks.delete(serviceName);
    if (claims.length > 0 || after.ports.length > 0 || after.problems.length > 0) {
      this.#services.set(serviceName, { claims, plan: after });
    } else {
      this.#services.delete(serviceName);
    }
  }

  *#makePlan(serviceName: string, { claims, plan }: PlannedService, work: Update): Steps<ServicePlan> {
    const { store, asked } = work;
    const context = this.#owners.hasAll(claims) ? work.uncontested : work.context;
    try {
      const ports = asked.get(serviceName);
      asked.delete(serviceName);
      // The objects of the store are never changed, only replaced: this Service is planned as it is now.
      if (ports) return yield* planPorts(ports, store.slices(serviceName), context);
      const service = store.service(serviceName);
      const slices = service ? store.slices(serviceName) : [];
      return yield* planService(service, slices, work.context);
    } catch (error) {
      return { ...plan, problems: [`The Service cannot be planned: ${errorText(error)}`] };
    }
  }

  #contexts(): Pick<Update, 'context' | 'uncontested'> {
    const context = this.#context();
    const { owners: _, ...uncontested } = context;
    return { context, uncontested };
  }

  #context(): PlanContext {
    return {
      family: this.#family,
      nodeName: this.#nodeName,
      zone: this.#zone,
      externalIps: this.#externalIps,
      addressRules: this.#addressRules,
      hint: this.#hint,
      owners: this.#owners,
      endpointCap: this.#endpointCap,
    };
  }

  #replace(before: readonly ServicePortPlan[], after: readonly ServicePortPlan[], former: Former): void {
    for (const old of before) {
      this.#count(old, -1);
      if (!former.ports.has(old.key)) former.ports.set(old.key, old);
      this.#ports.delete(old.key);
    }
    for (const port of after) {
      this.#count(port, +1);
      if (!former.ports.has(port.key)) former.ports.set(port.key, undefined);
      // Stored even when equal for the kernel: the plan is also what people ask about.
      this.#ports.set(port.key, port);
    }
  }

  *#differenceTo(former: Former): Steps<PlanUpdate> {
    const delta = {
      upserted: [] as ServicePortPlan[],
      removed: [] as ServicePortPlan[],
      replaced: [] as ServicePortPlan[],
    };
    const troubles: PortTroubles[] = [];
    const context = this.#context();
    for (const [key, before] of former.ports) {
      yield;
      const now = this.#ports.get(key);
      const changed = this.#troubles.enter(key, (now ?? before!).serviceName, now, context);
      if (changed) troubles.push(changed);
      if (now && before && samePortPlan(before, now)) continue;
      if (now) delta.upserted.push(now);
      if (before) (now ? delta.replaced : delta.removed).push(before);
    }
    const problems: ServiceProblem[] = [];
    for (const [serviceName, before] of former.problems) {
      const now = this.#services.get(serviceName)?.plan.problems ?? [];
      if (!sameTexts(before, now)) problems.push({ serviceName, problems: now });
    }
    return { delta, problems, troubles };
  }

  #count(port: ServicePortPlan, step: 1 | -1): void {
    if (port.internalVerdict === 'drop') this.#noLocal.internal += step;
    if (port.externalVerdict === 'drop') this.#noLocal.external += step;
  }

  #countRestrictions({ restrictions }: ServicePlan, step: 1 | -1): void {
    if (!restrictions) return;
    for (const restriction of RESTRICTIONS) if (restrictions.has(restriction)) this.#restricted[restriction] += step;
  }
}

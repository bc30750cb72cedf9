import { isDeepStrictEqual } from 'node:util';
import { type Clock, systemClock, type Timer, tellFailure } from '../../core/index.ts';
import type { Node } from '../objects/types.ts';
import type { ObjectEvent, ObjectHandler, ObjectSource, SourceProblem } from '../source.ts';
import type { ApiClient } from './client/api-client.ts';
import type { ApiObserver } from './client/observation.ts';
import { Reflector } from './watch/reflector.ts';
import { ENDPOINTS, nodeResource, type Resource, SERVICE_CIDRS, SLICES, servicesResource } from './watch/resource.ts';

/** As kube-proxy waits for its Node to exist and to have an address. */
const NODE_WAIT_MS = 30_000;
/** Problems that come together are told together. */
const PROBLEMS_DELAY_MS = 50;

export interface ApiSourceOptions {
  /** Stays the caller's: `stop` does not close it. */
  readonly client: ApiClient;
  /** The name of the Node this process runs on. */
  readonly nodeName: string;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
  /**
   * Only Services whose label service.kubernetes.io/service-proxy-name has this value.
   * @default those without the label
   */
  readonly serviceProxyName?: string;
  /** Told about lists, watches and failures (requests are observed by the client). @default nobody */
  readonly observe?: ApiObserver;
}

/**
 * Kubernetes objects from an API server: all Services and EndpointSlices that are the proxy's business, this Node, and
 * the ServiceCIDRs.
 *
 * `synced` comes when Services and EndpointSlices are complete, which may take as long as the API server is away, and
 * when the Node with an address and the ServiceCIDRs are there, for which it waits at most 30 s.
 */
export class ApiSource implements ObjectSource {
  readonly #nodeName: string;
  readonly #clock: Clock;
  readonly #services: Reflector;
  readonly #slices: Reflector;
  readonly #node: Reflector;
  readonly #serviceCidrs: Reflector;
  readonly #stopping = new AbortController();
  readonly #complete = new Set<Reflector>();
  #handler: ObjectHandler | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #synced = false;
  #nodeHasAddress = false;
  /** The time for the Node and the ServiceCIDRs is over. */
  #waitOver = false;
  #waitTimer: Timer | undefined;
  #problemsTimer: Timer | undefined;
  #toldProblems: readonly SourceProblem[] = [];

  constructor(options: ApiSourceOptions) {
    const { client, nodeName, clock = systemClock, random = Math.random, observe = () => {} } = options;
    this.#nodeName = nodeName;
    this.#clock = clock;
    const reflect = (...alternatives: readonly [Resource, ...Resource[]]): Reflector => {
      const reflector: Reflector = new Reflector(
        { client, clock, random, observe, alternatives },
        {
          event: (event) => this.#event(event),
          complete: () => this.#completed(reflector),
          problemsChanged: () => this.#problemsChanged(),
        },
      );
      return reflector;
    };
    this.#services = reflect(servicesResource(options.serviceProxyName));
    this.#slices = reflect(SLICES, ENDPOINTS);
    this.#node = reflect(nodeResource(nodeName));
    this.#serviceCidrs = reflect(SERVICE_CIDRS);
  }

  /** Begins to read. Resolves at once: an API server that is away is a problem, not an error. To be called once. */
  async start(handler: ObjectHandler): Promise<void> {
    this.#handler = handler;
    this.#waitTimer = this.#clock.setTimer(() => {
      this.#waitOver = true;
      this.#problemsChanged();
      this.#trySync();
    }, NODE_WAIT_MS);
    const { signal } = this.#stopping;
    const told = (error: unknown) => tellFailure('API reader', error);
    this.#running = Promise.all(this.#reflectors().map((reflector) => reflector.run(signal).catch(told)));
  }

  /** Nothing is told after this. Resolves when all connections are closed. */
  async stop(): Promise<void> {
    this.#handler = undefined;
    this.#waitTimer?.cancel();
    this.#problemsTimer?.cancel();
    this.#stopping.abort();
    await this.#running;
  }

  /** By resource, when the server last said something about it (by the clock's `now`); the never heard of are not in it. */
  lastActivity(): ReadonlyMap<string, number> {
    const result = new Map<string, number>();
    for (const { resource, lastActivity } of this.#reflectors()) {
      if (lastActivity !== undefined) result.set(resource.name, lastActivity);
    }
    return result;
  }

  #reflectors(): readonly Reflector[] {
    return [this.#node, this.#serviceCidrs, this.#services, this.#slices];
  }

  #event(event: ObjectEvent): void {
    this.#handler?.event(event);
    if (event.object.kind !== 'Node') return;
    this.#nodeHasAddress = event.type !== 'deleted' && hasAddress(event.object);
    this.#problemsChanged();
    this.#trySync();
  }

  #completed(reflector: Reflector): void {
    this.#complete.add(reflector);
    this.#trySync();
  }

  #trySync(): void {
    if (this.#synced) return;
    if (!this.#complete.has(this.#services) || !this.#complete.has(this.#slices)) return;
    if (!this.#waitOver && !(this.#nodeHasAddress && this.#serviceCidrs.tried)) return;
    this.#synced = true;
    this.#handler?.synced();
  }

  #problemsChanged(): void {
    // A ServiceCIDR list that is refused is not waited for.
    this.#trySync();
    this.#problemsTimer ??= this.#clock.setTimer(() => {
      this.#problemsTimer = undefined;
      this.#tellProblems();
    }, PROBLEMS_DELAY_MS);
  }

  #tellProblems(): void {
    const problems = this.#reflectors().flatMap((reflector) => reflector.problems());
    if (this.#waitOver && !this.#nodeHasAddress) {
      const message = 'This node does not exist in the API or has no address; check its name (--hostname-override)';
      problems.push({ where: this.#node.resource.name, object: `Node ${this.#nodeName}`, message });
    }
    if (isDeepStrictEqual(problems, this.#toldProblems)) return;
    this.#toldProblems = problems;
    this.#handler?.problems(problems);
  }
}

function hasAddress({ status }: Node): boolean {
  return status?.addresses?.some(({ type }) => type === 'InternalIP' || type === 'ExternalIP') ?? false;
}

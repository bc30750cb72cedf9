import type { RoutesConfig } from '../../config/index.ts';
import { type IpFamily, tryParseCidr } from '../../core/index.ts';
import { NODES, NodeAnnouncer, type ObjectEvent, ObjectsOf, type Resource, SERVICE_CIDRS } from '../../kube/index.ts';
import { FamilyRoutes, NetlinkRouteKernel, type RouteObserver } from '../../routes/index.ts';
import type { Part, PartContext } from '../part.ts';
import { logAnnouncerEvents, logRouteEvents, routeMetrics } from './observe.ts';

interface Running {
  readonly routes: FamilyRoutes;
  readonly kernel: NetlinkRouteKernel;
}

/** Keeps the routes to other nodes' pods. They stay in the kernel when it stops. */
export class RoutesPart implements Part {
  readonly resources: readonly Resource[] = [NODES, SERVICE_CIDRS];
  readonly #config: RoutesConfig;
  readonly #context: PartContext;
  readonly #machineFamilies: readonly IpFamily[];
  readonly #serviceCidrs = new ObjectsOf('ServiceCIDR');
  readonly #observe: RouteObserver;
  /** Writes what other nodes are to know about this one. */
  readonly #announcer: NodeAnnouncer;
  #families: readonly Running[] = [];

  /** @param machineFamilies the families this machine has */
  constructor(config: RoutesConfig, context: PartContext, machineFamilies: readonly IpFamily[]) {
    this.#config = config;
    this.#context = context;
    this.#machineFamilies = machineFamilies;
    const { client, clock, logger } = context;
    const { nodeName } = context.config;
    this.#announcer = new NodeAnnouncer({ client, nodeName, clock, observe: logAnnouncerEvents(logger) });
    const observers = [logRouteEvents(context.logger), routeMetrics(context.registry, context.clock)];
    this.#observe = (event) => {
      for (const observe of observers) observe(event);
    };
  }

  /** @throws ERR_NETLINK_SOCKET, KernelError when the kernel's routes cannot be read at all */
  start(): void {
    this.#families = this.#machineFamilies.map((family) => this.#familyOf(family));
  }

  changed(event: ObjectEvent): void {
    const { type, object } = event;
    if (this.#serviceCidrs.apply(event) !== undefined) this.#serviceRangesChanged();
    if (object.kind !== 'Node') return;
    for (const nodes of [this.#announcer, ...this.#families.map(({ routes }) => routes)]) {
      if (type === 'deleted') nodes.nodeRemoved(object.metadata.name);
      else nodes.nodeChanged(object);
    }
  }

  /** Begins to write: routes of nodes that were not told yet would be taken for those of nodes that are gone. */
  synced(): void {
    for (const { routes } of this.#families) routes.start();
  }

  async stop(): Promise<void> {
    await this.#announcer.stop();
    for (const { routes, kernel } of this.#families) {
      await routes.stop();
      kernel.close();
    }
  }

  #familyOf(family: IpFamily): Running {
    const { config, clock } = this.#context;
    const { interfaceName, ...settings } = this.#config;
    const kernel = NetlinkRouteKernel.open(family);
    const routes = new FamilyRoutes({
      family,
      nodeName: config.nodeName,
      settings,
      interfaceName,
      address: config.nodeIp,
      podRanges: config.cni?.podCidrs,
      kernel,
      clock,
      observe: this.#observe,
    });
    return { routes, kernel };
  }

  #serviceRangesChanged(): void {
    const texts = [...this.#serviceCidrs.values()].flatMap(({ spec }) => spec?.cidrs ?? []);
    const ranges = [...new Set(texts)].sort().flatMap((text) => tryParseCidr(text) ?? []);
    for (const { routes } of this.#families) routes.serviceRangesChanged(ranges);
  }
}

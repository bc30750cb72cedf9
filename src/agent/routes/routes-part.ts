import type { RoutesConfig } from '../../config/index.ts';
import { type ComparedPart, type IpFamily, inBackground, type Timer, tryParseCidr } from '../../core/index.ts';
import {
  type KubeKind,
  NETWORK_UNAVAILABLE,
  NODES,
  type Node,
  nodeIpsOf,
  type ObjectEvent,
  ObjectsOf,
  type Resource,
  SERVICE_CIDRS,
  type WantedAnnotations,
} from '../../kube/index.ts';
import { Nftables, watchNftables } from '../../netlink/nftables/index.ts';
import {
  FamilyRoutes,
  formerRangesWanted,
  leavesTunnel,
  NetlinkRouteKernel,
  OwnEnds,
  publishedAnnotations,
  type RouteObserver,
  RouteRules,
  TUNNEL_KEPT_MS,
  withdrawnAnnotations,
  withdrawnWireguard,
} from '../../routes/index.ts';
import type { Pages } from '../http/http-server.ts';
import type { MtuSource, Part, PartContext, Readiness } from '../part.ts';
import { namedPodRanges } from '../pools/named-pod-ranges.ts';
import type { PodRanges } from '../pools/pod-ranges.ts';
import type { PeerFamily } from '../status/collect/facts.ts';
import { logRouteEvents, routeMetrics } from './observe.ts';
import { logRuleEvents, ruleMetrics } from './observe-rules.ts';
import { recordRouteEvents } from './record.ts';
import { ReportPage } from './report-page.ts';
import { RouteReadiness } from './route-readiness.ts';
import { ruleSettings } from './rule-settings.ts';
import { SubnetFile } from './subnet-file.ts';
import { registerTunnelMetrics } from './traffic-metrics.ts';
import { TunnelSource } from './tunnel-source.ts';
import { wireguardPart } from './wireguard-part.ts';

/**
 * What flannel and Calico write when they have begun their work; never the opposite: the routes outlive the agent. Whether a node
 * has the condition at all is up to the cloud.
 */
const NETWORK_IS_UP = {
  type: NETWORK_UNAVAILABLE,
  status: 'False',
  reason: 'NodeplaneIsUp',
  message: 'nodeplane has made the routes of this node',
} as const;

/** The rules stay a little longer than the tunnel that they guard. */
const RULES_KEPT_MS = TUNNEL_KEPT_MS + 2000;

interface Running {
  readonly family: IpFamily;
  readonly routes: FamilyRoutes;
  readonly kernel: NetlinkRouteKernel;
}

/** Keeps the routes to other nodes' pods. They stay in the kernel when it stops. */
export class RoutesPart implements Part, MtuSource {
  readonly resources: readonly Resource[] = [NODES, SERVICE_CIDRS];
  readonly pages: Pages;
  readonly #config: RoutesConfig;
  readonly #context: PartContext;
  readonly #machineFamilies: readonly IpFamily[];
  readonly #serviceCidrs = new ObjectsOf('ServiceCIDR');
  readonly #standing = new RouteReadiness();
  readonly #observe: RouteObserver;
  readonly #report: ReportPage;
  readonly #mtuListeners = new Set<() => void>();
  readonly #rules: RouteRules;
  /** Writes what other nodes are to know about this one. */
  readonly #announcer: PartContext['announcer'];
  readonly #wireguard: ReturnType<typeof wireguardPart>;
  readonly #ends: OwnEnds;
  readonly #tunnelSource: TunnelSource;
  readonly #subnetFile: SubnetFile | undefined;
  readonly #ranges: PodRanges;
  /** The Nodes whose ranges are not only those that they name. */
  readonly #nodes = new Map<string, Node>();
  /** Nodes that had an address when they were told last. */
  readonly #placed = new Set<string>();
  #rulesTimer: Timer | undefined;
  #stopped = false;
  #areNodesRead = false;
  #isOwnKnown = false;
  #isSynced = false;
  #hasBegun = false;
  #families: readonly Running[] = [];

  /**
   * @param machineFamilies the families this machine has
   * @param ranges of the pods of all nodes
   */
  constructor(config: RoutesConfig, context: PartContext, machineFamilies: readonly IpFamily[], ranges: PodRanges) {
    this.#ranges = ranges;
    this.#config = config;
    this.#context = context;
    this.#machineFamilies = machineFamilies;
    const { logger, registry, clock, recorder, announcer } = context;
    const { nodeName } = context.config;
    const families = () =>
      this.#families.map(({ family, routes }) => ({ family, standings: () => routes.standings() }));
    this.#report = new ReportPage({ node: nodeName, mode: config.mode, families });
    this.pages = this.#report.pages;
    registerTunnelMetrics(registry);
    this.#announcer = announcer;
    const announce = (annotations: WantedAnnotations) => announcer.want('wireguard', annotations);
    this.#wireguard = wireguardPart({ config, clock, logger, registry, announce });
    this.#ends = new OwnEnds(machineFamilies);
    const { subnetFile, networks } = config.flannel;
    this.#subnetFile =
      subnetFile === undefined
        ? undefined
        : new SubnetFile(subnetFile, networks, config.masquerade !== undefined, logger);
    this.#tunnelSource = new TunnelSource(logger);
    // What flannel's annotations say, other nodes let in.
    const hasSource = config.mode !== 'host-gw' && !config.flannel.annotations;
    const observers: RouteObserver[] = [
      ...(hasSource ? [this.#tunnelSource.observe] : []),
      logRouteEvents(logger),
      routeMetrics(registry, clock),
      this.#report.observe,
      this.#standing.observe,
      ...(recorder ? [recordRouteEvents(recorder, nodeName)] : []),
      ({ kind }) => {
        if (kind === 'mtuKnown') for (const listener of this.#mtuListeners) listener();
      },
    ];
    this.#observe = (event) => {
      for (const observe of observers) observe(event);
      if (this.#ends.apply(event)) this.#endsChanged();
      if (event.kind === 'synced') this.#subnetFile?.retry();
    };
    this.#rules = rulesOf(config, context);
  }

  /** @throws ERR_NETLINK_SOCKET, KernelError when the kernel's routes cannot be read at all */
  start(): void {
    this.#families = this.#machineFamilies.map((family) => this.#familyOf(family));
    this.#ranges.listen((name) => {
      const node = this.#nodes.get(name);
      if (node && !this.#stopped) this.#nodeChanged(node);
    });
  }

  /** Ready: the kernel holds the routes to other nodes. */
  readiness(): Readiness {
    return { name: 'routes', reason: this.#lacking ?? this.#standing.reason() };
  }

  /** What it needs to begin; undefined: nothing more. */
  get #lacking(): string | undefined {
    if (!this.#areNodesRead) return 'the Nodes of the cluster are not all read yet';
    const { nodeName } = this.#context.config;
    return this.#isOwnKnown ? undefined : `there is no Node object "${nodeName}" yet`;
  }

  compared(): readonly ComparedPart[] {
    const part = (name: string, of: Omit<ComparedPart, 'name'>): ComparedPart => {
      return { name, compare: () => of.compare(), repair: () => of.repair() };
    };
    const used = this.#families.filter(({ routes }) => !routes.isUnused);
    // Where no family is used, why is to be told.
    const families = used.length > 0 ? used : this.#families;
    return [
      ...families.map(({ family, routes }) => part(`routes ${family}`, routes)),
      part('rules beside the routes', this.#rules),
      ...(this.#wireguard ? [part('WireGuard', this.#wireguard.tunnel)] : []),
    ];
  }

  changed(event: ObjectEvent): void {
    const { type, object } = event;
    if (this.#serviceCidrs.apply(event) !== undefined) this.#serviceRangesChanged();
    if (object.kind !== 'Node') return;
    const { name } = object.metadata;
    if (type !== 'deleted') {
      this.#nodeChanged(object);
      return;
    }
    this.#nodes.delete(name);
    this.#placed.delete(name);
    for (const nodes of this.#followers()) nodes.nodeRemoved(name);
  }

  listed(kind: KubeKind): void {
    if (kind === 'Node') this.#areNodesRead = true;
    this.#mayBegin();
  }

  synced(): void {
    this.#isSynced = true;
    this.#mayBegin();
  }

  /**
   * Begins to write, once it is known what is to be: routes of nodes that were not told yet would be taken for those of nodes that are
   * gone, and without this node's own ranges its pods would be no more masqueraded. Until then what an earlier agent wrote stays.
   */
  #mayBegin(): void {
    if (this.#hasBegun || !this.#isSynced || this.#lacking !== undefined) return;
    this.#hasBegun = true;
    inBackground('routes', async () => {
      await this.#ranges.complete;
      if (this.#stopped) return;
      const isLeft = this.#families.some(({ kernel, family }) => leavesTunnel(kernel, family, this.#config));
      // Until the tunnel is gone the rules of before say who may use it.
      if (isLeft) this.#rulesTimer = this.#context.clock.setTimer(() => this.#rules.start(), RULES_KEPT_MS);
      else this.#rules.start();
      for (const { routes } of this.#families) routes.start();
    });
  }

  /** The largest packet that gets to other nodes in every family that has routes. */
  mtu(): number | undefined {
    const known = this.#families.flatMap(({ routes }) => routes.mtu() ?? []);
    return known.length > 0 ? Math.min(...known) : undefined;
  }

  /** How it stands with each other Node, for people. */
  standing(): readonly PeerFamily[] {
    return this.#families.map(({ family, routes }) => ({
      family,
      problem: this.#report.problem(family),
      standings: routes.standings(),
    }));
  }

  onMtuChange(listener: () => void): void {
    this.#mtuListeners.add(listener);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#rulesTimer?.cancel();
    await this.#rules.stop();
    for (const { routes, kernel } of this.#families) {
      await routes.stop();
      kernel.close();
    }
    await this.#wireguard?.stop();
  }

  #nodeChanged(node: Node): void {
    const isOwn = node.metadata.name === this.#context.config.nodeName;
    if (isOwn && !this.#config.flannel.annotations) this.#announcer.want('flannel', withdrawnAnnotations(node));
    if (isOwn && !this.#wireguard) this.#announcer.want('wireguard', withdrawnWireguard(node));
    if (isOwn) this.#tunnelSource.nodeChanged(node);
    const podCIDRs = this.#ranges.ofNode(node);
    // Blocks have objects of their own, which tell the others.
    if (isOwn)
      this.#announcer.want('ranges', formerRangesWanted(node, this.#context.config.pools ? [] : (podCIDRs ?? [])));
    // One that has no address for a while is where it was: its cloud’s controller may have been told wrong.
    if (nodeIpsOf(node).length > 0) this.#placed.add(node.metadata.name);
    else if (this.#placed.has(node.metadata.name)) return;
    // All Nodes of a large cluster would take much memory.
    if (podCIDRs) this.#nodes.set(node.metadata.name, node);
    const withRanges: Node = podCIDRs ? { ...node, spec: { ...node.spec, podCIDRs } } : node;
    for (const follower of this.#followers()) follower.nodeChanged(withRanges);
    if (!isOwn) return;
    this.#isOwnKnown = true;
    this.#mayBegin();
  }

  /** Those that follow the Nodes and the ranges of their pods. */
  #followers(): (FamilyRoutes | RouteRules)[] {
    return [...this.#families.map(({ routes }) => routes), this.#rules];
  }

  #familyOf(family: IpFamily): Running {
    const { config, clock } = this.#context;
    const { mode, tunnel, vni, port, mtu, interfaceName } = this.#config;
    const settings = { mode, tunnel, vni, port, mtu, podRanges: namedPodRanges(config) };
    const kernel = NetlinkRouteKernel.open(family);
    const routes = new FamilyRoutes({
      family,
      nodeName: config.nodeName,
      settings,
      interfaceName,
      address: config.nodeIp,
      podRanges: config.cni?.podCidrs,
      wireguard: this.#wireguard?.tunnel,
      kernel,
      clock,
      observe: this.#observe,
    });
    return { family, routes, kernel };
  }

  /** The kernel holds what others need to reach this node's pods: now they may be told. */
  #endsChanged(): void {
    const { mode, vni, clearNetworkUnavailable, flannel } = this.#config;
    const { ends } = this.#ends;
    if (!ends) return;
    if (flannel.annotations) this.#announcer.want('flannel', publishedAnnotations(ends, mode, vni));
    if (clearNetworkUnavailable && this.#context.config.cni) this.#announcer.wantCondition(NETWORK_IS_UP);
    this.#subnetFile?.endsChanged(ends);
  }

  #serviceRangesChanged(): void {
    const texts = [...this.#serviceCidrs.values()].flatMap(({ spec }) => spec?.cidrs ?? []);
    const ranges = [...new Set(texts)].sort().flatMap((text) => tryParseCidr(text) ?? []);
    for (const { routes } of this.#families) routes.serviceRangesChanged(ranges);
  }
}

function rulesOf(routes: RoutesConfig, { config, registry, clock, logger }: PartContext): RouteRules {
  const observers = [logRuleEvents(logger, clock), ruleMetrics(registry)];
  return new RouteRules({
    nodeName: config.nodeName,
    settings: ruleSettings(routes, config),
    podRanges: config.cni?.podCidrs,
    open: () => Nftables.open(),
    watch: (listener) => watchNftables(listener, { withoutOwn: true }),
    clock,
    observe: (event) => {
      for (const observe of observers) observe(event);
    },
  });
}

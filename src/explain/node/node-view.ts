import {
  attempt,
  cidrContains,
  formatIp,
  type IpAddress,
  type IpFamily,
  type IpProtocol,
  ipEquals,
  parseIp,
} from '../../core/index.ts';
import { Netlink, openTogether } from '../../netlink/index.ts';
import { Nftables } from '../../netlink/nftables/index.ts';
import {
  type Link,
  listAddresses,
  listLinks,
  listNeighbours,
  type Neighbour,
  type NextHop,
  nextHopsOf,
  type PolicyRule,
  type RouteAnswer,
  type RouteQuestion,
} from '../../netlink/route/index.ts';
import {
  countBeingOpened,
  type Listener,
  listListeners,
  listSendingPorts,
  withSockDiag,
} from '../../netlink/sock-diag/index.ts';
import { LOOPBACK_IFINDEX, NETLINK_ROUTE, RT_SCOPE_LINK } from '../../netlink/uapi/index.ts';
import { inNetns, type LocalPorts, readLocalPorts, readSysctl } from '../../sys/index.ts';
import {
  type BesideRules,
  besideRulesOf,
  type CgroupPrograms,
  cgroupPrograms,
  type LinkRules,
  linkRulesHere,
  programsAbove,
} from './beside/index.ts';
import { Bridges } from './bridges.ts';
import { type Ipsec, ipsecHere } from './ipsec.ts';
import { type LocalPod, localPodsIn } from './local-pods.ts';
import { hasNeighbourSockets, isInUse, otherNamespaces, within } from './namespaces.ts';
import { entryOf, Neighbours } from './neighbours.ts';
import { RouteLookups } from './route-lookups.ts';
import { type PodRules, podRulesIn, type RulesHere, readRules } from './rules/index.ts';
import { Tracking } from './tracking.ts';
import { type WayOut, wayOut, wayOutBySeveral } from './way-out.ts';

/** Kinds of links that share another one with the host, and that the host itself does not hear. */
const UPON_OTHERS: ReadonlySet<string> = new Set(['macvlan', 'ipvlan']);

/** Policy rules that every namespace begins with: local, main, default. */
const OF_KERNEL: ReadonlySet<number> = new Set([0, 32_766, 32_767]);

/**
 * The kernel of this node, read piece by piece when a stage asks, and kept for one question. Writes nothing, and sends
 * nothing but in `askUnanswered`.
 */
export class NodeView {
  readonly tracking = new Tracking();
  readonly bridges: Bridges;
  readonly neighbours: Neighbours;
  readonly #route: Netlink;
  readonly #nft: Nftables;
  /** By path of the namespace: a socket stays in that in which it was opened. */
  readonly #podRoutes = new Map<string, Netlink>();
  readonly #rules = new Map<IpFamily, RulesHere>();
  #hasFlowTables: boolean | undefined;
  #linkRules: readonly LinkRules[] | undefined;
  #links: readonly Link[] | undefined;
  #addresses: ReturnType<typeof listAddresses> | undefined;
  #pods: readonly LocalPod[] | undefined;
  readonly #lookups = new RouteLookups();
  readonly #waysOut = new Map<string, WayOut | undefined>();

  private constructor(route: Netlink, nft: Nftables) {
    this.#route = route;
    this.bridges = new Bridges(route);
    this.neighbours = new Neighbours(route);
    this.#nft = nft;
  }

  /**
   * Of the calling thread's namespace.
   *
   * @throws ERR_NETLINK_SOCKET
   */
  static open(): NodeView {
    const [route, nft] = openTogether((keep) => [keep(Netlink.open(NETLINK_ROUTE)), keep(Nftables.open())] as const);
    return new NodeView(route, nft);
  }

  rulesFor(family: IpFamily): RulesHere {
    const rules = this.#rules.get(family) ?? readRules(this.#nft, family);
    this.#rules.set(family, rules);
    return rules;
  }

  /** Whether packets of flows that began may pass rules by (nf_flow_table_inet.c, net/netfilter). */
  get hasFlowTables(): boolean {
    this.#hasFlowTables ??= this.#nft.hasFlowTables;
    return this.#hasFlowTables;
  }

  /** Rules that packets meet on links and in bridges, or ARP meets, and that no walk knows. Our own are not among them. */
  get linkRules(): readonly LinkRules[] {
    this.#linkRules ??= linkRulesHere(this.#nft);
    return this.#linkRules;
  }

  /**
   * What beside rules sees the packets of a link of this node. Filters that pass all through another link of ours to
   * slow it down (ifb), as those of the CNI plugin do, do not count.
   */
  besideRulesOn(link: Link): readonly BesideRules[] {
    return besideRulesOf(this.#route, link, (index) => this.link(index)?.kind === 'ifb');
  }

  /** The same of a pod's own link. */
  besideRulesIn({ netns, inside }: LocalPod): readonly BesideRules[] {
    const route = this.#routeOf(netns);
    // Programs of BPF are asked for in the namespace of the caller.
    return inNetns(netns, () => besideRulesOf(route, inside, () => false));
  }

  /** Where programs of BPF hang that see all sockets of this node, those of pods too. */
  get cgroupPrograms(): CgroupPrograms {
    return cgroupPrograms();
  }

  /** Where programs of BPF hang that see sockets of some processes. */
  programsSeeing(sockets: readonly Listener[]): CgroupPrograms {
    return programsAbove(sockets.map(({ cgroup }) => cgroup));
  }

  /** What IPsec does; undefined: it cannot be read. @param netns the namespace of a pod. @default the node's */
  ipsec(netns?: string): Ipsec | undefined {
    return within(netns, ipsecHere);
  }

  close(): void {
    for (const socket of [this.#route, this.#nft, ...this.#podRoutes.values()]) socket.close();
  }

  /** Of nf_tables: it grows with each change of anybody’s rules. */
  get generation(): number {
    return this.#nft.generation();
  }

  /** The way of the node’s own packets, by its policy rules too. */
  route(question: RouteQuestion): RouteAnswer {
    return this.#lookups.ask(question, this.#route, 'this node');
  }

  /** What of policy rules decides about some of these routes and is not known, in words. */
  get doubts(): readonly string[] {
    return this.#lookups.doubts;
  }

  /** Whether policy rules of this node ask for the class of traffic. */
  routesByClass(family: IpFamily): boolean {
    return this.#lookups.rulesOf(family, this.#route, 'this node').some(({ byClass }) => byClass);
  }

  /** Whether somebody has made policy rules on this node, which may ask for marks, for sources and for links. */
  hasPolicyRules(family: IpFamily): boolean {
    return this.#lookups.rulesOf(family, this.#route, 'this node').some(({ priority }) => !OF_KERNEL.has(priority));
  }

  /** Whether policy rules of this node ask for sources. */
  routesBySource(family: IpFamily): boolean {
    return this.#lookups.rulesOf(family, this.#route, 'this node').some(({ source }) => source !== undefined);
  }

  /** The first policy rule of this node that asks for a source which is one of these; undefined: none does. */
  ruleBySource(...sources: readonly IpAddress[]): PolicyRule | undefined {
    const rules = this.#lookups.rulesOf(sources[0]!.family, this.#route, 'this node');
    return rules.find(({ source }) => source && sources.some((one) => cidrContains(source, one)));
  }

  /** The way out of a pod. */
  routeIn(pod: LocalPod, question: RouteQuestion): RouteAnswer {
    return this.#lookups.ask(question, this.#routeOf(pod.netns), `the pod ${pod.ip}`);
  }

  /** The way out of this node to an address elsewhere; undefined when there is none that can be followed. */
  wayOut(to: IpAddress): WayOut | undefined {
    const text = formatIp(to);
    if (!this.#waysOut.has(text)) {
      const route = (address: IpAddress) => {
        const answer = this.route({ destination: address });
        return answer.kind === 'route' ? answer.route : undefined;
      };
      const found = route(to);
      const link = (index: number) => this.link(index);
      const facts = { link, neighbours: this.neighbours, route };
      const hops = this.#hopsTo(to);
      const way =
        hops.length > 1 ? found && wayOutBySeveral(to, found, hops, facts) : found && wayOut(to, found, facts);
      this.#waysOut.set(text, way);
    }
    return this.#waysOut.get(text);
  }

  /** Whether nobody is at the next hop towards an address to which packets were just sent. Looks anew. */
  isNextHopDead(to: IpAddress): boolean {
    this.#lookups.forget();
    this.#waysOut.clear();
    this.neighbours.forget();
    return this.wayOut(to)?.unanswered !== undefined;
  }

  /** Has next hops towards these addresses that did not answer last asked for once more, all of them at once. */
  askUnanswered(destinations: readonly IpAddress[]): void {
    const asksFrom = ({ index, ip }: Neighbour) =>
      ip!.family === 'IPv4' || this.addresses.some((own) => own.index === index && own.scope === RT_SCOPE_LINK);
    const isAnew = () => {
      const entries = destinations.flatMap((to) => [this.wayOut(to)?.unanswered, ...this.nextHops(to)]);
      return this.neighbours.askAnew(entries.filter((entry) => entry !== undefined).filter(asksFrom));
    };
    // Of a tunnel the inner neighbour first, then whom its own packets go to.
    while (isAnew()) this.#waysOut.clear();
  }

  /** Whom this node takes for the next hops of a route that has several; none of any other. */
  nextHops(to: IpAddress): readonly (Neighbour | undefined)[] {
    return this.#hopsTo(to).map(({ gateway, outInterface }) => gateway && this.neighbours.find(gateway, outInterface));
  }

  #hopsTo(to: IpAddress): readonly NextHop[] {
    const matched = this.route({ destination: to, matched: true });
    return matched.kind === 'route' ? nextHopsOf(matched.route) : [];
  }

  /** Of the node’s namespace, as they were when they were first asked for. */
  get links(): readonly Link[] {
    this.#links ??= listLinks(this.#route);
    return this.#links;
  }

  link(index: number): Link | undefined {
    return this.links.find((link) => link.index === index);
  }

  /** @param netns of a pod. @default the node's */
  isLoopbackUp(netns?: string): boolean {
    const links = netns === undefined ? this.links : listLinks(this.#routeOf(netns));
    return links.some(({ index, up }) => index === LOOPBACK_IFINDEX && up);
  }

  get addresses(): ReturnType<typeof listAddresses> {
    this.#addresses ??= listAddresses(this.#route).filter(isInUse);
    return this.#addresses;
  }

  /** Of IPv4 also those in the range of an address of `lo` (fib_add_ifaddr, net/ipv4/fib_frontend.c): 127.0.0.0/8. */
  isOwnAddress(ip: string): boolean {
    const asked = parseIp(ip);
    return this.addresses.some(({ address, prefixLength, index }) => {
      if (address.family !== asked.family) return false;
      const isRange = index === LOOPBACK_IFINDEX && asked.family === 'IPv4';
      return isRange ? cidrContains({ address, prefixLength }, asked) : ipEquals(address, asked);
    });
  }

  /** The pods of this node with this address, those whose pair ends here: more than one has it wrongly. */
  podsAt(ip: string): readonly LocalPod[] {
    return this.allPods.filter((pod) => pod.ip === ip && pod.outside !== undefined);
  }

  /** A pod's link with this address that is no end of a pair, but lies on another link (macvlan, ipvlan); undefined: there is none. */
  linkUpon(ip: string): Link | undefined {
    return this.allPods.find((pod) => pod.ip === ip && UPON_OTHERS.has(pod.inside.kind))?.inside;
  }

  /** Pods of this node with an address of the family: those whose pair ends here. */
  localPods(family: IpFamily): readonly LocalPod[] {
    return this.allPods.filter(({ address, outside }) => outside !== undefined && address.family === family);
  }

  /** Whom this node takes for the neighbour with an address on a link; undefined: it knows of none. */
  neighbour(address: IpAddress, index: number): Neighbour | undefined {
    return this.neighbours.find(address, index);
  }

  /** Whom a pod takes for the neighbour with an address. */
  neighbourIn({ netns, inside }: LocalPod, address: IpAddress): Neighbour | undefined {
    const { family } = address;
    return entryOf(address, listNeighbours(this.#routeOf(netns), { family, index: inside.index }));
  }

  /** @param netns the namespace of a pod. @default the node's */
  listeners(protocol: IpProtocol, netns?: string): readonly Listener[] {
    return within(netns, () => withSockDiag((netlink) => listListeners(netlink, protocol)));
  }

  /** How many connections of TCP to a port are being opened. @param netns the namespace of a pod. @default the node's */
  beingOpened(port: number, netns?: string): number {
    return within(netns, () => withSockDiag((netlink) => countBeingOpened(netlink, port)));
  }

  /** From which ports sockets may send to one. @param netns the namespace of a pod. @default the node's */
  sendingPorts(protocol: 'TCP' | 'UDP', to: number, netns?: string): ReadonlySet<number> {
    return within(netns, () => withSockDiag((netlink) => listSendingPorts(netlink, protocol, to)));
  }

  /** Undefined: the kernel has no such setting (the module is not loaded). @param netns the namespace of a pod. @default the node's */
  sysctl(name: string, netns?: string): string | undefined {
    return attempt(() => within(netns, () => readSysctl(name)));
  }

  /** Those that sockets get which ask for none. @param netns the namespace of a pod. @default the node's */
  localPorts(netns?: string): LocalPorts {
    return within(netns, readLocalPorts);
  }

  /** Whether this node may answer on a link for addresses that it has not: the kernel for others, or a program by a raw socket. */
  mayAnswerFor(family: IpFamily, link: string): boolean {
    const [version, proxy] = family === 'IPv4' ? (['ipv4', 'proxy_arp'] as const) : (['ipv6', 'proxy_ndp'] as const);
    const isOn = ['all', link].some((name) => this.sysctl(`net/${version}/conf/${name}/${proxy}`) === '1');
    return isOn || hasNeighbourSockets(family);
  }

  /** Rules of somebody else in a pod: a mesh's sidecar, most often. Undefined: there are none for packets of the family. */
  rulesIn({ netns }: LocalPod, family: IpFamily): PodRules | undefined {
    return podRulesIn(netns, family);
  }

  /** @param netns the namespace of a pod */
  #routeOf(netns: string): Netlink {
    const route = this.#podRoutes.get(netns) ?? inNetns(netns, () => Netlink.open(NETLINK_ROUTE));
    this.#podRoutes.set(netns, route);
    return route;
  }

  /** Also those of other links than pairs that end here. */
  get allPods(): readonly LocalPod[] {
    this.#pods ??= localPodsIn(otherNamespaces(this.#route), this.links);
    return this.#pods;
  }
}

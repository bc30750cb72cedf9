import {
  cidrContains,
  formatIp,
  type IpAddress,
  ipEquals,
  sameBytes,
  settingName,
  shellWord,
} from '../../../core/index.ts';
import type { Link, Neighbour } from '../../../netlink/route/index.ts';
import {
  IFA_F_DADFAILED,
  IFA_F_TENTATIVE,
  IFF_NOARP,
  NUD_PERMANENT,
  RT_SCOPE_HOST,
  RTN_LOCAL,
} from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import { runIn, showingRules } from '../commands.ts';

// Who has an address: how this node and its pods are asked for that on their links (ARP, neighbour discovery), and whether they answer.

/** What two ends of a link cannot find each other by, or take for each other. */
export interface Unheard {
  readonly text: string;
  readonly remedy: readonly string[];
  /** Not only until it is asked for again. */
  readonly lasts: boolean;
}

/** Whether somebody has entered a neighbour, whom nobody is asked about then. */
export function isFixed(entry: Neighbour | undefined): boolean {
  return ((entry?.state ?? 0) & NUD_PERMANENT) !== 0;
}

/** Whether the MAC address of a neighbour is not known. */
export function isUnknown(entry: Neighbour | undefined): boolean {
  return (entry?.lladdr.length ?? 0) === 0;
}

/** Values of net.ipv4.conf.*.arp_ignore (Documentation/networking/ip-sysctl.rst); those not named here ignore nothing. */
export const ARP_IGNORE = { otherLinks: 1, otherSubnets: 2, ofHost: 3, all: 8 } as const;

/** A link without ARP. @param netns of a pod. @default this node's */
export function deaf({ name }: Pick<Link, 'name'>, whose: string, netns?: string): Pick<Unheard, 'text' | 'remedy'> {
  const text = `${name} in ${whose} neither asks nor answers who has an address (NOARP)`;
  return { text, remedy: [runIn(netns, `ip link set ${shellWord(name)} arp on`)] };
}

/** A pod whose own link is without ARP. */
export function deafPod({ ip, netns, inside }: LocalPod): Pick<Unheard, 'text' | 'remedy'> {
  return deaf(inside, `the pod ${ip}`, netns);
}

/**
 * Whether it is this node that a pod means by an address on its link: it has it, or answers for it (proxy_arp), or is taken for it by the
 * pod, or nobody else is there (a pair without a bridge). An address that no pod of the link has.
 */
export function isOfNode(address: IpAddress, pod: LocalPod, node: NodeView): boolean {
  const { outside, seenAs } = pod;
  if (seenAs?.kind !== 'bridge' || node.isOwnAddress(formatIp(address))) return true;
  const mac = node.neighbourIn(pod, address)?.lladdr;
  if (mac && mac.length > 0) return [outside, seenAs].some((link) => link && sameBytes(link.address, mac));
  return isProxyOn(address, seenAs, node);
}

function isProxyOn({ family }: IpAddress, { name }: Link, node: NodeView): boolean {
  const [version, setting] = family === 'IPv4' ? (['ipv4', 'proxy_arp'] as const) : (['ipv6', 'proxy_ndp'] as const);
  return ['all', name].some((conf) => node.sysctl(`net/${version}/conf/${conf}/${setting}`) === '1');
}

/** Why a pod that asks this node for an address gets no answer; undefined: it gets one, or knows already. */
export function unansweredByNode(
  address: IpAddress,
  pod: LocalPod,
  entry: Neighbour | undefined,
  node: NodeView,
): Unheard | undefined {
  const link = pod.seenAs!;
  if (isFixed(entry)) return undefined;
  const lasts = isUnknown(entry);
  if ((link.flags & IFF_NOARP) !== 0) return { ...deaf(link, 'this node'), lasts };
  const text = formatIp(address);
  const here = node.addresses.find((one) => one.index === link.index && ipEquals(one.address, address));
  if (address.family === 'IPv6') {
    if (here && (here.flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) === 0) return undefined;
  } else if (here || node.isOwnAddress(text)) {
    const found = ignored(address, link, holding(address, pod.address, link, node), lasts, node);
    return found ?? untaken(address, pod, lasts, node) ?? filtered(address, pod.address, link, lasts, node);
  }
  if (answersFor(address, pod, node)) return undefined;
  const settings =
    address.family === 'IPv4'
      ? [`ipv4/conf/${link.name}/proxy_arp`, `ipv4/conf/${link.name}/forwarding`]
      : [`ipv6/conf/${link.name}/proxy_ndp`, 'ipv6/conf/all/forwarding'];
  const names = settings.map((setting) => shellWord(settingName(`net/${setting}`)));
  return {
    text: `this node does not answer who has ${text} on ${link.name}, where ${pod.ip} asks for it`,
    remedy: [`sysctl ${names.join(' ')}`, `ip route get ${text} from ${pod.ip} iif ${shellWord(link.name)}`],
    lasts,
  };
}

/**
 * Whether this node answers for an address that it has not: by an entry for it, or, of IPv4, wherever it would forward to by another
 * link (arp_process, net/ipv4/arp.c; ndisc_recv_ns, net/ipv6/ndisc.c).
 */
function answersFor(address: IpAddress, { seenAs, address: source }: LocalPod, node: NodeView): boolean {
  const link = seenAs!;
  const isEntered = node.neighbours.isProxied(address, link.index);
  if (address.family === 'IPv6') {
    const forwards = node.sysctl('net/ipv6/conf/all/forwarding') !== '0';
    return isEntered && forwards && isProxyOn(address, link, node);
  }
  if (node.sysctl(`net/ipv4/conf/${link.name}/forwarding`) === '0') return false;
  const way = node.route({ destination: address, source, inInterface: link.index });
  if (way.kind === 'refused') return false;
  return isEntered || (isProxyOn(address, link, node) && way.route.outInterface !== link.index);
}

/** Why nobody of a pod finds its address. @param by the pod that asks; undefined: this node does */
export function unansweredByPod(
  pod: LocalPod,
  entry: Neighbour | undefined,
  by: LocalPod | undefined,
  node: NodeView,
): Unheard | undefined {
  if (isFixed(entry)) return undefined;
  const silent = silentAsker(pod.address, entry, by ?? { inside: pod.seenAs!, netns: undefined }, node);
  if (silent || pod.address.family === 'IPv6') return silent;
  const lasts = isUnknown(entry);
  if ((pod.inside.flags & IFF_NOARP) !== 0) return { ...deafPod(pod), lasts };
  const askers = askersFor(by, pod, node);
  const { address, prefixLength, netns } = pod;
  const isNear = askers.some((one) => cidrContains({ address, prefixLength }, one));
  return (
    ignored(address, pod.inside, { isOnLink: true, isNear, isOfHost: false }, lasts, node, netns) ??
    filteredByPod(pod, askers, node)
  );
}

/**
 * Why whoever knows no neighbour for an address may not ask for one, by settings of its own link. @param asker a pod,
 * or the node's end of its link
 */
export function silentAsker(
  { family }: IpAddress,
  entry: Neighbour | undefined,
  { inside, netns }: { readonly inside: Pick<Link, 'name'>; readonly netns: string | undefined },
  node: NodeView,
): Unheard | undefined {
  if (!isUnknown(entry)) return undefined;
  const conf = `net/${family === 'IPv4' ? 'ipv4' : 'ipv6'}/neigh/${inside.name}`;
  const value = (name: string) => node.sysctl(`${conf}/${name}`, netns)?.trim() ?? '';
  const isAsking = value('mcast_solicit') !== '0';
  if (isAsking && ['', '0'].includes(value('app_solicit'))) return undefined;
  const text = `${netns ? 'the pod' : 'this node'} does not ask, or not at once, who has an address on ${inside.name}`;
  return { text: `${text} (${settingName(conf)}: mcast_solicit, app_solicit)`, remedy: [], lasts: false };
}

/** The addresses by which a pod or this node may ask for a pod's on its link. */
function askersFor(by: LocalPod | undefined, { address, seenAs }: LocalPod, node: NodeView): readonly IpAddress[] {
  const own = by ? [by] : node.addresses.filter(({ index }) => index === seenAs!.index);
  return own.map((one) => one.address).filter(({ family }) => family === address.family);
}

/** What arp_filter keeps a pod from answering: it sends to who asks by another of its links. */
function filteredByPod(pod: LocalPod, askers: readonly IpAddress[], node: NodeView): Unheard | undefined {
  const { address, inside, ip, netns } = pod;
  if (arpSetting('arp_filter', inside.name, node, netns) === 0) return undefined;
  const missed = askers.find((asker) => {
    const way = node.routeIn(pod, { destination: asker, source: address });
    return way.kind === 'refused' || way.route.outInterface !== inside.index;
  });
  if (!missed) return undefined;
  const text = `the pod ${ip} does not answer ARP of ${formatIp(missed)}: arp_filter is set for ${inside.name}, and it sends there by another link`;
  return { text, remedy: [], lasts: false };
}

/** How an address is held by whoever is asked for it on a link. */
interface Holding {
  /** It is an address of that link, */
  readonly isOnLink: boolean;
  /** in whose subnet who asks is. */
  readonly isNear: boolean;
  /** Its scope is the host. */
  readonly isOfHost: boolean;
}

function holding(address: IpAddress, asker: IpAddress, { index }: Pick<Link, 'index'>, node: NodeView): Holding {
  const own = node.addresses.filter((one) => ipEquals(one.address, address));
  const here = own.find((one) => one.index === index);
  const isOfHost = own.every(({ scope }) => scope === RT_SCOPE_HOST);
  return { isOnLink: here !== undefined, isNear: here !== undefined && cidrContains(here, asker), isOfHost };
}

/** arp_ignore, net/ipv4/arp.c. */
function isIgnored(value: number, { isOnLink, isNear, isOfHost }: Holding): boolean {
  return (
    value === ARP_IGNORE.all ||
    (value === ARP_IGNORE.otherLinks && !isOnLink) ||
    (value === ARP_IGNORE.otherSubnets && !isNear) ||
    (value === ARP_IGNORE.ofHost && isOfHost)
  );
}

/** Whether this node answers nobody of an address who asks on a link for one of its own, by arp_ignore. */
export function isArpIgnored(
  address: IpAddress,
  asker: IpAddress,
  link: Pick<Link, 'index' | 'name'>,
  node: NodeView,
): boolean {
  return isIgnored(arpIgnoreOf(link, node), holding(address, asker, link, node));
}

/** What arp_ignore keeps from being answered. @param netns whose it is. @default the node */
function ignored(
  address: IpAddress,
  { name }: Link,
  held: Holding,
  lasts: boolean,
  node: NodeView,
  netns?: string,
): Unheard | undefined {
  const value = arpIgnoreOf({ name }, node, netns);
  if (!isIgnored(value, held)) return undefined;
  const text = `nobody answers ARP for ${formatIp(address)}: arp_ignore is ${value} for ${name} ${netns ? 'in the pod' : 'on this node'}`;
  const set = `sysctl -w net.ipv4.conf.all.arp_ignore=0 ${shellWord(settingName(`net/ipv4/conf/${name}/arp_ignore`))}=0`;
  return { text, remedy: [runIn(netns, set)], lasts };
}

/**
 * Whether this node takes what comes by a link for its own, where it has the address: a policy rule in front of table
 * local may lead it elsewhere. Nobody who asks gets an answer then (arp_process, net/ipv4/arp.c).
 */
export function isTaken(
  destination: IpAddress,
  source: IpAddress,
  { index }: Pick<Link, 'index'>,
  node: NodeView,
): boolean {
  const way = node.route({ destination, source, inInterface: index });
  return way.kind === 'route' && way.route.type === RTN_LOCAL;
}

function untaken(address: IpAddress, { address: source, seenAs }: LocalPod, lasts: boolean, node: NodeView) {
  if (isTaken(address, source, seenAs!, node)) return undefined;
  const [own, asker] = [formatIp(address), formatIp(source)];
  const text = `this node does not answer ${asker} who has ${own} on ${seenAs!.name}: it does not take what ${asker} sends there for its own`;
  return {
    text,
    remedy: [showingRules(address.family), `ip route get ${own} from ${asker} iif ${shellWord(seenAs!.name)}`],
    lasts,
  };
}

/** What arp_filter keeps this node from answering: who asks is not where packets from that address go. */
function filtered(
  address: IpAddress,
  asker: IpAddress,
  link: Link,
  lasts: boolean,
  node: NodeView,
): Unheard | undefined {
  if (!isArpFiltered(address, asker, link, node)) return undefined;
  const [own, to] = [formatIp(address), formatIp(asker)];
  const text = `this node does not answer ${to} who has ${own} on ${link.name}: arp_filter is set, and from ${own} it sends to ${to} by another link`;
  const set = `sysctl -w net.ipv4.conf.all.arp_filter=0 ${shellWord(settingName(`net/ipv4/conf/${link.name}/arp_filter`))}=0`;
  return { text, remedy: [set, `ip route get ${to} from ${own}`], lasts };
}

/** arp_filter, net/ipv4/arp.c. */
export function isArpFiltered(
  address: IpAddress,
  asker: IpAddress,
  { index, name }: Pick<Link, 'index' | 'name'>,
  node: NodeView,
): boolean {
  if (arpSetting('arp_filter', name, node) === 0) return false;
  const way = node.route({ destination: asker, source: address });
  return way.kind === 'refused' || way.route.outInterface !== index;
}

/** @param netns whose it is. @default the node */
export function arpIgnoreOf({ name }: Pick<Link, 'name'>, node: NodeView, netns?: string): number {
  return arpSetting('arp_ignore', name, node, netns);
}

/** The setting that holds for a link: the larger one of its own and that of all. */
function arpSetting(setting: 'arp_ignore' | 'arp_filter', name: string, node: NodeView, netns?: string): number {
  return Math.max(...['all', name].map((conf) => Number(node.sysctl(`net/ipv4/conf/${conf}/${setting}`, netns))));
}

import { formatIp, IP_PROTOCOLS, type IpAddress, ipEquals, shellWord } from '../../../core/index.ts';
import type { Route, RoutedFlow } from '../../../netlink/route/index.ts';
import { RTN_BROADCAST, RTN_LOCAL, RTN_UNICAST } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { runIn, showingNoRoute } from '../commands.ts';
import { isOfNode } from './asked-for.ts';

// The routes within pods, and routes that lead to somebody who would have to send the packets on.

/** Of include/uapi/linux/rtnetlink.h: what a route has besides a gateway of its own family, told but not read. */
const BY_OTHERS: ReadonlyMap<number, string> = new Map([
  [9, 'go by one of several next hops'],
  [18, 'go by a gateway of the other family'],
  [22, 'are wrapped in others (encap)'],
]);

/** Packets that a pod sends or gets. */
interface Packets {
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly flow: RoutedFlow | undefined;
}

interface Refused {
  readonly text: string;
  readonly remedy: readonly string[];
}

/** What policy rules may ask for; undefined: of a protocol that the kernel does not take in this question. */
export function flowOf({ protocol }: Asked['target'], ports: Omit<RoutedFlow, 'protocol'>): RoutedFlow | undefined {
  return protocol === 'SCTP' ? undefined : { protocol: IP_PROTOCOLS[protocol], ...ports };
}

/**
 * What the routes of a pod have against packets that it sends; undefined: nothing. `isLost`: they come to nobody else.
 *
 * @param packets `isSentOn`: they are for somebody behind this node, whatever address they have
 */
export function refusedByPod(
  pod: LocalPod,
  packets: Packets & { readonly isSentOn: boolean },
  node: NodeView,
  otherwise: string,
): (Refused & { readonly isLost: boolean }) | undefined {
  const out = node.routeIn(pod, packets);
  const [own, to] = [formatIp(packets.source), formatIp(packets.destination)];
  const remedy = [runIn(pod.netns, `ip route get ${to}`)];
  if (out.kind === 'refused')
    return {
      text: `the pod ${own} has no route to ${to} (${out.errno})`,
      remedy: showingNoRoute(packets.destination, pod.netns),
      isLost: true,
    };
  const { type, outInterface } = out.route;
  if (type === RTN_LOCAL && own !== to) {
    return { text: `the pod ${own} has the address ${to} itself, and sends nothing to others`, remedy, isLost: true };
  }
  if (type === RTN_BROADCAST) {
    const isUdp = packets.flow?.protocol === IP_PROTOCOLS.UDP;
    return {
      text: `${to} is a broadcast address${isUdp ? ': who answers is not known' : ', with which nobody is connected'}`,
      remedy,
      isLost: !isUdp,
    };
  }
  if (type !== RTN_LOCAL && type !== RTN_UNICAST)
    return { text: `the pod ${own} has a route of type ${type} to ${to}`, remedy, isLost: true };
  if (type === RTN_LOCAL) return undefined;
  if (outInterface !== pod.inside.index) {
    const text = `packets of the pod ${own} to ${to} ${otherwise} ${pod.inside.name}: where they come out was not looked at`;
    return { text, remedy, isLost: false };
  }
  const hops = hopsOf(out.route, pod, node);
  if (hops <= 1 && packets.isSentOn && !isOnLinkOf(out.route, packets.destination, pod, node)) {
    const text = `packets of the pod ${own} to ${to} have a hop limit of ${hops}: whoever sends them on drops them`;
    return { text, remedy, isLost: false };
  }
  const detour = tightness(out.route) ?? detourOfPod(out.route, packets.destination, pod, node);
  return detour === undefined
    ? undefined
    : { text: `packets of the pod ${own} to ${to} ${detour}`, remedy, isLost: false };
}

/** Fewer bytes than a segment of TCP has at least (TCP_MIN_SND_MSS, include/net/tcp.h), with its headers. */
const LEAST_BYTES = 88;

/** In words, what of a route leaves hardly any room for what is sent by it, or for what answers; undefined: nothing. */
function tightness({ mtu, otherMetrics }: Route): string | undefined {
  const metrics = [...(mtu === undefined ? [] : [`mtu ${mtu}`]), ...otherMetrics];
  const tight = metrics.find((text) => Number(/^(?:mtu|window) (\d+)$/.exec(text)?.[1] ?? LEAST_BYTES) < LEAST_BYTES);
  return tight && `go by a route with ${tight}: what comes of them was not looked at`;
}

/** From which address a pod sends of itself, where that is another; undefined: from this one. */
export function otherSource({ source, destination, flow }: Packets, pod: LocalPod, node: NodeView): string | undefined {
  const way = node.routeIn(pod, { destination, flow });
  const own = way.kind === 'route' ? way.route.source : undefined;
  if (!own || ipEquals(own, source)) return undefined;
  return `the pod ${formatIp(source)} sends to ${formatIp(destination)} from ${formatIp(own)}, unless a process asks for the other address`;
}

/** The hop limit that packets begin with (ip4_dst_hoplimit, ip6_dst_hoplimit), unless a process asks for another one. */
function hopsOf({ otherMetrics }: Route, { netns, inside, address }: LocalPod, node: NodeView): number {
  const [, ofRoute] = otherMetrics.map((text) => /^hoplimit (\d+)$/.exec(text)).find((found) => found) ?? [];
  const setting = address.family === 'IPv4' ? 'net/ipv4/ip_default_ttl' : `net/ipv6/conf/${inside.name}/hop_limit`;
  return Number(ofRoute ?? node.sysctl(setting, netns) ?? Number.NaN);
}

/** Whether nobody sends it on: another pod of the bridge has the address. */
function isOnLinkOf({ gateway }: Route, to: IpAddress, { seenAs }: LocalPod, node: NodeView): boolean {
  return gateway === undefined && node.podsAt(formatIp(to)).some((pod) => pod.seenAs?.index === seenAs?.index);
}

/** What a pod has against packets that come to its link (rules, routes, rp_filter); undefined: nothing. */
export function untakenByPod(
  pod: LocalPod,
  { source, destination, flow }: Packets,
  node: NodeView,
): Refused | undefined {
  if (ipEquals(source, destination)) return undefined;
  const inInterface = pod.inside.index;
  const answer = node.routeIn(pod, { source, destination, flow, inInterface });
  if (answer.kind === 'route' && answer.route.type === RTN_LOCAL) return undefined;
  const [from, own] = [formatIp(source), formatIp(destination)];
  const why = answer.kind === 'refused' ? answer.errno : `a route of type ${answer.route.type}`;
  const remedy = [runIn(pod.netns, `ip route get ${own} from ${from} iif ${shellWord(pod.inside.name)}`)];
  return {
    text: `the pod ${own} does not take packets from ${from} (${why}): its rules, its routes or rp_filter`,
    remedy,
  };
}

/** In words, how a route leads elsewhere than to the address itself; undefined: it does not. */
export function detourOf({ gateway, unknown }: Route, to: IpAddress): string | undefined {
  const how = unknown.map(({ type }) => BY_OTHERS.get(type)).find((text) => text !== undefined);
  if (how !== undefined) return `${how}: where they come out was not looked at`;
  if (!gateway || ipEquals(gateway, to)) return undefined;
  return `go by ${formatIp(gateway)}: whether they are sent on there was not looked at`;
}

/** The same of a pod's own route; undefined: it leads to this node, or to whom it is for. */
function detourOfPod(route: Route, to: IpAddress, pod: LocalPod, node: NodeView): string | undefined {
  const hop = route.gateway ?? to;
  if (route.gateway && isOfNode(hop, pod, node)) return undefined;
  const detour = detourOf(route, to);
  if (detour !== undefined) return detour;
  // Nobody of the pod's link has an address that this node finds elsewhere, but for pods that it has no route to.
  const way = node.route({ destination: hop });
  const isPod = node.podsAt(formatIp(hop)).some(({ seenAs }) => seenAs?.index === pod.seenAs?.index);
  const isThere = isPod || (way.kind === 'route' && way.route.outInterface === pod.seenAs?.index);
  if (isThere || isOfNode(hop, pod, node)) return undefined;
  return `are for whoever answers for ${formatIp(hop)} on ${pod.seenAs?.name}: this node does not`;
}

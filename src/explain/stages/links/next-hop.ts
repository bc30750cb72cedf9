import { formatIp, formatMac, type IpAddress, ipEquals, sameBytes, shellWord } from '../../../core/index.ts';
import type { Link, Neighbour } from '../../../netlink/route/index.ts';
import { IFF_NOARP, RT_SCOPE_LINK } from '../../../netlink/uapi/index.ts';
import { type LocalPod, type NodeView, rivalOf, showsToRules } from '../../node/index.ts';
import { runIn } from '../commands.ts';
import {
  deafPod,
  isFixed,
  isOfNode,
  isUnknown,
  silentAsker,
  type Unheard,
  unansweredByNode,
} from '../pods/asked-for.ts';
import { undiscovered } from './discovery.ts';

/** What a pod sends. */
export interface Sending {
  /** Which pod of this node has the address, if one does. */
  readonly peer: LocalPod | undefined;
  /** It is the pod that has to ask first. */
  readonly asks: boolean;
  /** It may get another destination on the way, or, as an answer, has one that rules have made of the client's. */
  readonly translated: boolean;
}

/** What keeps a pod from sending to an address; undefined: nothing on its link does. */
export function unheardBy(pod: LocalPod, to: IpAddress, sending: Sending, node: NodeView): Unheard | undefined {
  const { inside, seenAs } = pod;
  const next = nextOf(pod, to, node);
  if (!next) return undefined;
  // Where rules see the frames of the bridge, it finds the way for those that are translated, whoever they were sent to.
  const isFound = seenAs?.kind === 'bridge' && showsToRules(seenAs, to, node);
  if ((inside.flags & IFF_NOARP) !== 0 && !isFixed(next.entry))
    return { ...deafPod(pod), lasts: !(isFound && sending.translated) };
  const { peer } = sending;
  if (peer?.ip === formatIp(next.hop) && peer.seenAs?.index === seenAs?.index) {
    const takes = takenForOther(pod, next, peer.inside);
    return takes && { ...takes, lasts: isFixed(next.entry) && !hasMac(peer, next.entry!.lladdr) };
  }
  if (!isOfNode(next.hop, pod, node)) return sending.translated ? unowned(next, pod, node) : undefined;
  const rival = rivalOf(next.hop, pod, node.allPods);
  if (rival) return { text: bothHave(formatIp(next.hop), rival), remedy: [], lasts: false };
  const silent = unheardByNode(pod, next, { to, asks: sending.asks }, node);
  if (silent) return silent;
  const takes = seenAs && takenForOther(pod, next, seenAs);
  return takes && { ...takes, lasts: isFixed(next.entry) && !isFound };
}

/** In words, that an address is in a pod which has no business with it. */
export function bothHave(address: string, netns: string): string {
  return `another pod of that link has the address ${address} too (${netns}): who answers for it is not known`;
}

/**
 * An address of the pod's subnet that leads elsewhere, as a Service's, and that neither this node answers for nor a pod
 * is known to have.
 */
function unowned({ hop, entry }: NextHop, { ip, seenAs }: LocalPod, node: NodeView): Unheard | undefined {
  const text = formatIp(hop);
  if (!isUnknown(entry) || node.podsAt(text).some((pod) => pod.seenAs?.index === seenAs?.index)) return undefined;
  return {
    text: `the pod ${ip} asks on its link who has ${text}, and neither this node nor a pod of ${seenAs?.name} is known to answer`,
    remedy: [],
    lasts: false,
  };
}

/** Why this node is not found by a pod that sends to it. */
function unheardByNode(
  pod: LocalPod,
  { hop, entry }: NextHop,
  { to, asks }: { readonly to: IpAddress; readonly asks: boolean },
  node: NodeView,
): Unheard | undefined {
  const link = pod.seenAs?.index;
  const own = node.addresses.filter(({ address }) => ipEquals(address, hop));
  // This node asks for the pod first: with the address that it sends from, or with one of the link.
  const isHeard = own.some(({ index }) => index === link || ipEquals(hop, to));
  /**
   * Whoever is asked learns who asks, in IPv6 by the source of the packet or a link-local address; nobody asks for a
   * pod that is known.
   */
  const isTold =
    isUnknown(node.neighbour(pod.address, link ?? 0)) &&
    own.some(({ index, scope }) => index === link && (scope === RT_SCOPE_LINK || ipEquals(hop, to)));
  return (
    (asks || !isHeard ? unansweredByNode(hop, pod, entry, node) : undefined) ??
    (asks || !isTold || hop.family === 'IPv6' ? silentAsker(hop, entry, pod, node) : undefined) ??
    (asks || !isTold ? undiscovered(pod, { asks: 'pod', for: hop }, entry, node) : undefined)
  );
}

/** A pod that takes another MAC address than that of a link for its next hop's; undefined: it does not. */
function takenForOther(
  { ip, netns, inside }: LocalPod,
  { hop, entry }: NextHop,
  owner: Link,
): Pick<Unheard, 'text' | 'remedy'> | undefined {
  if (isUnknown(entry) || sameBytes(entry!.lladdr, owner.address)) return undefined;
  return {
    text: `the pod ${ip} takes ${formatMac(entry!.lladdr)} for ${formatIp(hop)}, which has ${formatMac(owner.address)}`,
    remedy: [runIn(netns, `ip neigh del ${formatIp(hop)} dev ${shellWord(inside.name)}`)],
  };
}

/** By whom a pod sends on its link, and what it knows of that one. */
interface NextHop {
  readonly hop: IpAddress;
  readonly entry: Neighbour | undefined;
}

/** Undefined: the pod sends to this address by another link. */
export function nextOf(pod: LocalPod, to: IpAddress, node: NodeView): NextHop | undefined {
  const out = node.routeIn(pod, { destination: to });
  if (out.kind !== 'route' || out.route.outInterface !== pod.inside.index) return undefined;
  const hop = out.route.gateway ?? to;
  return { hop, entry: node.neighbourIn(pod, hop) };
}

/** Whether a pod has a link with this MAC address. */
export function hasMac({ macs }: LocalPod, mac: Uint8Array): boolean {
  return macs.some((own) => sameBytes(own, mac));
}

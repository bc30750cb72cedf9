import { cidrContains, formatIp, formatMac, type IpAddress, ipEquals, sameBytes } from '../../../core/index.ts';
import type { Neighbour } from '../../../netlink/route/index.ts';
import { IFF_NOARP, NTF_STICKY, NUD_NOARP, NUD_PERMANENT, RT_SCOPE_LINK } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { deafPod, isOfNode, type Unheard, unansweredByNode, unansweredByPod } from '../pods/asked-for.ts';
import type { Report } from '../report.ts';
import { isBridged, isSwitched, showsToRules } from './bridge.ts';
import { undiscovered } from './discovery.ts';
import { vlanToNode } from './vlans.ts';

/** What a pod sends. */
interface Sending {
  /** Which pod of this node has the address, if one does. */
  readonly peer: LocalPod | undefined;
  /** It is the pod that has to ask first. */
  readonly asks: boolean;
  /** It may get another destination on the way. */
  readonly translated: boolean;
}

/** What keeps a pod from sending to an address; undefined: nothing on its link does. */
function unheardBy(
  pod: LocalPod,
  to: IpAddress,
  { peer, asks, translated }: Sending,
  node: NodeView,
): Unheard | undefined {
  const { ip, inside, netns, seenAs } = pod;
  const enter = `nsenter --net=${netns}`;
  const next = nextOf(pod, to, node);
  if (!next) return undefined;
  const { hop, entry } = next;
  // Where rules see the frames of the bridge, it finds the way for those that are translated, whoever they were sent to.
  const isFound = seenAs?.kind === 'bridge' && showsToRules(seenAs, to, node);
  if ((inside.flags & IFF_NOARP) !== 0 && !isFixed(entry)) return { ...deafPod(pod), lasts: !(isFound && translated) };
  const isPeer = peer?.ip === formatIp(hop) && peer.seenAs?.index === seenAs?.index;
  const isNode = !isPeer && isOfNode(hop, pod, node);
  // This node asks for the pod first: with the address that it sends from, or with one of the link.
  const isHeard = node.addresses.some(
    ({ address, index }) => ipEquals(address, hop) && (index === seenAs?.index || ipEquals(hop, to)),
  );
  const known = node.neighbour(pod.address, seenAs?.index ?? 0);
  /** Whoever is asked learns who asks, in IPv6 by the source of the packet or a link-local address; nobody asks for a pod that is known. */
  const isTold =
    isUnknown(known) &&
    node.addresses.some(
      ({ address, index, scope }) =>
        ipEquals(address, hop) && index === seenAs?.index && (scope === RT_SCOPE_LINK || ipEquals(hop, to)),
    );
  const isAsking = isNode && (asks || !isTold);
  const silent =
    (isNode && (asks || !isHeard) ? unansweredByNode(hop, pod, entry, node) : undefined) ??
    (isAsking ? undiscovered(pod, { asks: 'pod', for: hop }, entry, node) : undefined);
  if (silent) return silent;
  const owner = isPeer ? peer.inside : isNode ? seenAs : undefined;
  if (!entry || entry.lladdr.length === 0 || !owner || sameBytes(entry.lladdr, owner.address)) return undefined;
  const isOtherLink = isPeer && hasMac(peer, entry.lladdr);
  const text = `the pod ${ip} takes ${formatMac(entry.lladdr)} for ${formatIp(hop)}, which has ${formatMac(owner.address)}`;
  const remedy = [`${enter} ip neigh del ${formatIp(hop)} dev ${inside.name}`];
  return { text, remedy, lasts: isFixed(entry) && !(isNode && isFound) && !isOtherLink };
}

/** By whom a pod sends to an address on its link, and what it knows of that one; undefined: it sends by another link. */
function nextOf(pod: LocalPod, to: IpAddress, node: NodeView) {
  const out = node.routeIn(pod, { destination: to });
  if (out.kind !== 'route' || out.route.outInterface !== pod.inside.index) return undefined;
  const hop = out.route.gateway ?? to;
  return { hop, entry: node.neighbourIn(pod, hop) };
}

function isFixed(entry: Neighbour | undefined): boolean {
  return ((entry?.state ?? 0) & NUD_PERMANENT) !== 0;
}

function isUnknown(entry: Neighbour | undefined): boolean {
  return (entry?.lladdr.length ?? 0) === 0;
}

/** Whether a pod has a link with this MAC address. */
export function hasMac({ macs }: LocalPod, mac: Uint8Array): boolean {
  return macs.some((own) => sameBytes(own, mac));
}

/** How frames come to a pod of a bridge, and where its own go. */
interface Frames {
  /** From another port of the bridge, and not from this node. */
  readonly byPort: boolean;
  /** To this node, or from it. */
  readonly routed: boolean;
}

/**
 * What a bridge's forwarding database keeps from a pod, or from this node that the pod sends to; undefined: nothing. An entry that is not
 * local moves to the port by which the pod is heard next, unless it is sticky or that port does not learn (net/bridge/br_fdb.c,
 * br_fdb_update); frames to a local one end at this node if they come in by a port (br_input.c), and are sent by its port if they do not.
 */
function misled(
  { ip, inside, outside, seenAs }: LocalPod,
  { byPort, routed }: Frames,
  node: NodeView,
): Unheard | undefined {
  if (seenAs?.kind !== 'bridge') return undefined;
  const { learning = true, unicastFlood = true } = outside!.bridgePort ?? {};
  const bridge = seenAs.name;
  const isLocal = ({ state }: Neighbour) => (state & NUD_PERMANENT) !== 0;
  const back = `bridge fdb replace ${formatMac(seenAs.address)} dev ${bridge} self permanent`;
  if (routed && !node.bridges.forwarding(seenAs.index, seenAs.address).some(isLocal)) {
    const text = `${bridge} does not take frames to its own MAC address ${formatMac(seenAs.address)} for this node's (bridge fdb)`;
    return { text, remedy: [back], lasts: true };
  }
  const entries = node.bridges.forwarding(seenAs.index, inside.address);
  const mac = formatMac(inside.address);
  const enter = `bridge fdb replace ${mac} dev ${outside!.name} master dynamic`;
  const wrong = entries.find((entry) => entry.index !== outside!.index || (byPort && isLocal(entry)));
  if (wrong) {
    const where = isLocal(wrong) ? 'takes for its own' : `sends to ${node.link(wrong.index)?.name ?? 'another port'}`;
    const isFixed = (wrong.state & NUD_NOARP) !== 0 && !learning;
    const lasts = isLocal(wrong) || (wrong.flags & NTF_STICKY) !== 0 || isFixed;
    return { text: `${bridge} ${where} what is for ${mac}, the pod ${ip} (bridge fdb)`, remedy: [enter], lasts };
  }
  if (entries.length > 0 || unicastFlood) return undefined;
  const text = `the port ${outside!.name} gets no frames to unknown addresses, and ${bridge} has no entry for ${mac}, the pod ${ip}`;
  return { text, remedy: [enter], lasts: !learning };
}

/** Looks whether the client's packets leave its link, wherever they end up. */
export function sends(pod: LocalPod, to: IpAddress, goals: readonly Goal[], node: NodeView, report: Report): boolean {
  const translated = goals.some(({ ip }) => !ipEquals(ip, to));
  const [peer] = node.podsAt(formatIp(to));
  const frames = { byPort: false, routed: peer?.seenAs?.index !== pod.seenAs?.index };
  const cut = frames.routed ? vlanToNode(pod, node) : undefined;
  if (cut) {
    report.fail('link', cut);
    return false;
  }
  const found = [unheardBy(pod, to, { peer, asks: true, translated }, node), misled(pod, frames, node)];
  const lost = found.find((one) => one?.lasts);
  if (lost) {
    report.fail('link', { code: 'neighbour', text: lost.text, remedy: lost.remedy });
    return false;
  }
  for (const text of [...found.map((one) => one?.text), locked(pod)])
    if (text !== undefined) report.cannotTell('link', text);
  return true;
}

/** In words, what a locked port may stop; undefined: it is none. */
function locked({ outside }: LocalPod): string | undefined {
  if (!outside?.bridgePort?.locked) return undefined;
  return `the port ${outside.name} is locked: frames of senders that are not entered for it are dropped`;
}

/** Looks whether an endpoint is found on its link and finds who connects, and whether its port lets it. Says whether not. */
export function lookAtNeighbours(asked: Asked, goal: Goal, pod: LocalPod, node: NodeView, report: Report): boolean {
  const { client } = asked;
  const switched = isSwitched(asked, goal, node);
  const [here, back] = [client.kind === 'pod' ? client.pod : undefined, goal.source];
  const entry = switched ? node.neighbourIn(here!, goal.ip) : node.neighbour(goal.ip, pod.seenAs!.index);
  const isBeside = here !== undefined && here.seenAs?.index === pod.seenAs!.index;
  const isShown = showsToRules(pod.seenAs!, goal.ip, node);
  const byPort = isBeside && (switched || isShown);
  const asker = here && back && ipEquals(back, client.ip) ? here : undefined;
  // Whom a pod has asked knows it by that.
  const asksBack = isBridged(asked, goal, pod, node) && !(switched && isUnknown(entry));
  const found = [
    unansweredByPod(pod, entry, isAskedNear(switched ? here : undefined, pod, node), node),
    undiscovered(pod, switched ? { asks: 'other pod', other: here! } : { asks: 'node', from: back }, entry, node),
    asksBack
      ? undiscovered(here!, { asks: 'other pod', other: pod }, node.neighbourIn(pod, client.ip), node)
      : undefined,
    misled(pod, { byPort, routed: !switched }, node),
    byPort ? misled(here, { byPort, routed: false }, node) : undefined,
    back && unheardBy(pod, back, { peer: asker, asks: false, translated: goal.masqueraded !== false }, node),
  ].filter((one) => one !== undefined);
  const lost = found.find(({ lasts }) => lasts);
  if (lost) {
    report.failEndpoint('link', goal.address, { code: 'neighbour', text: lost.text, remedy: lost.remedy });
    return true;
  }
  for (const text of [...found.map((one) => one.text), locked(pod)])
    if (text !== undefined) report.cannotTellEndpoint('link', goal.address, text);
  // Who asks first is whoever sends first, and is known to the other by that; the node's own frames go to all ports.
  const listener = switched ? pod : isBridged(asked, goal, pod, node) ? here : undefined;
  if (listener && isUnasked(listener, goal.ip)) {
    const text = `the port ${listener.outside!.name} gets no frames to all: who asks for ${listener.ip} there is not heard`;
    report.cannotTellEndpoint('link', goal.address, text);
  }
  return false;
}

/** Whether who asks for a pod's address has one in its subnet: another pod, or this node. */
function isAskedNear(by: LocalPod | undefined, { address, prefixLength, seenAs }: LocalPod, node: NodeView): boolean {
  const own = by ? [by] : node.addresses.filter(({ index }) => index === seenAs!.index);
  return own.some(
    (one) => one.address.family === address.family && cidrContains({ address, prefixLength }, one.address),
  );
}

/** Looks whether whoever sends the answers, this node or a pod of the same bridge, finds the pod that they are for. Says whether not. */
export function isAnswerLost(asked: Asked, goal: Goal, node: NodeView, report: Report): boolean {
  const { client, target } = asked;
  if (client.kind !== 'pod') return false;
  const [pod] = node.podsAt(formatIp(goal.ip));
  const switched = isSwitched(asked, goal, node);
  const bridged = isBridged(asked, goal, pod, node);
  const by = switched || bridged ? pod : undefined;
  const isAskedByClient = switched || by === undefined;
  const found =
    (switched ? undefined : mistaken(client.pod, bridged, node)) ??
    unfound(client.pod, target.ip, { by, isAskedByClient }, node) ??
    (by ? undefined : unsought(client.pod, target.ip, node));
  // Who looks for it is not known where masquerading is not.
  const lasts = found?.lasts === true && goal.masqueraded !== undefined;
  if (found && lasts) report.failEndpoint('link', goal.address, { code: 'neighbour', ...found });
  else if (found) report.cannotTellEndpoint('link', goal.address, found.text);
  return lasts;
}

/**
 * Whom this node takes for a client, where it has a fixed entry that is wrong: answers that it routes are lost, and of IPv6 those to
 * who asks for this node.
 */
function mistaken(client: LocalPod, isBridged: boolean, node: NodeView): Unheard | undefined {
  const { address, inside, ip, seenAs } = client;
  const entry = node.neighbour(address, seenAs!.index);
  if (!entry || (entry.state & NUD_PERMANENT) === 0 || sameBytes(entry.lladdr, inside.address)) return undefined;
  if (isBridged && address.family === 'IPv4') return undefined;
  const text = `this node takes ${formatMac(entry.lladdr)} for the pod ${ip}, which has ${formatMac(inside.address)}`;
  return {
    text,
    remedy: [`ip neigh del ${ip} dev ${seenAs!.name}`],
    lasts: !isBridged && !hasMac(client, entry.lladdr),
  };
}

/**
 * Why nobody finds a client that does not answer who has its address; undefined: whoever looks for it knows it, or learns of it when the
 * client asks (arp_process, net/ipv4/arp.c).
 *
 * @param by the pod of the same bridge that looks for it. Undefined: this node does
 * @param isAskedByClient whether it is that one whom the client looks for before it sends
 */
function unfound(
  client: LocalPod,
  to: IpAddress,
  { by, isAskedByClient }: { readonly by: LocalPod | undefined; readonly isAskedByClient: boolean },
  node: NodeView,
): Unheard | undefined {
  const { address, inside, seenAs } = client;
  const entry = by ? node.neighbourIn(by, address) : node.neighbour(address, seenAs!.index);
  const silent = unansweredByPod(client, entry, isAskedNear(by, client, node), node);
  const next = nextOf(client, to, node);
  if (!silent?.lasts || !next) return undefined;
  if ((inside.flags & IFF_NOARP) !== 0 || isFixed(next.entry)) return silent;
  const asksFirst = isUnknown(next.entry);
  if (asksFirst && isAskedByClient) return undefined;
  return { ...silent, lasts: !asksFirst && !isAskedByClient };
}

/** Why this node does not find a client that answers it; undefined: it knows it, or learns of it when the client asks for the node. */
function unsought(client: LocalPod, to: IpAddress, node: NodeView): Unheard | undefined {
  const next = nextOf(client, to, node);
  if (!next || isUnknown(next.entry)) return undefined;
  return undiscovered(client, { asks: 'node', from: to }, node.neighbour(client.address, client.seenAs!.index), node);
}

/** Whether a pod does not hear other ports of its bridge ask for its address. */
function isUnasked({ outside }: LocalPod, { family }: IpAddress): boolean {
  const { broadcastFlood = true, multicastFlood = true } = outside?.bridgePort ?? {};
  return !(family === 'IPv4' ? broadcastFlood : multicastFlood);
}

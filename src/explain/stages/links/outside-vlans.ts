import { formatIp, type IpAddress, ipEquals } from '../../../core/index.ts';
import type { Link } from '../../../netlink/route/index.ts';
import { NUD_PERMANENT } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Finding } from '../report.ts';
import { isSwitched } from './bridge.ts';
import { bridgeOf, isInVlanRange, notTaken, ownPort, portOf, type Side, vlanBetween, vlanToNode } from './vlans.ts';

// VLANs between a bridge of this node and somebody outside, behind a link that is a port of it. What is out there may have tags.

/** What keeps frames from each other. */
interface Cut extends Finding {
  /** Not only perhaps. */
  readonly lasts: boolean;
}

/** What VLANs of its bridge do to frames of an endpoint: to this node, to a pod of the same bridge, or to a client outside behind it. */
export function vlansApart(asked: Asked, goal: Goal, pod: LocalPod, node: NodeView): Cut | undefined {
  const { client, target } = asked;
  const certain = (found: Finding | undefined) => found && { ...found, lasts: true };
  if (client.kind === 'pod' && isSwitched(asked, goal, node)) return certain(vlanBetween(client.pod, pod, node));
  const toClient = answersByBridge(asked, pod, node) && goal.masqueraded !== true;
  const toNode = toClient && ipEquals(goal.ip, target.ip) ? undefined : certain(vlanToNode(pod, node));
  return toNode ?? (toClient ? vlanToOutside(asked, pod, node) : undefined);
}

/** The same of this node and a client outside, who sends to it; undefined: they are not kept apart, or no bridge is between them. */
export function vlanToClient(asked: Asked, node: NodeView): Cut | undefined {
  const [pod] = node.podsAt(formatIp(asked.target.ip));
  return pod && answersByBridge(asked, pod, node) ? undefined : vlanToOutside(asked, 'this node', node);
}

/** Whether what a pod sends to a client outside are frames of the bridge by which the client's come in, and nobody routes them. */
function answersByBridge({ client }: Asked, pod: LocalPod, node: NodeView): boolean {
  const link = client.kind === 'outside' ? node.link(client.link.index) : undefined;
  if (!link || !pod.outside || bridgeOf(link, node)?.index !== pod.seenAs?.index) return false;
  const out = node.routeIn(pod, { destination: client.ip, source: pod.address });
  return out.kind === 'route' && out.route.gateway === undefined;
}

function vlanToOutside({ client }: Asked, by: LocalPod | 'this node', node: NodeView): Cut | undefined {
  const link = client.kind === 'outside' ? node.link(client.link.index) : undefined;
  const bridge = link && bridgeOf(link, node);
  if (!link || !bridge?.vlanFiltering) return undefined;
  const from = by === 'this node' ? ownPort(bridge, link, node) : portOf(by.outside!, node);
  const mac = macOf(client.ip, link, node);
  const all = portsTo(mac, bridge, node).map((port) => between({ from, port, mac, bridge }, node));
  // Behind which of several it is may not be known.
  const doubt = all.find((one) => one?.lasts === false) ?? all.find((one) => one);
  return doubt && { ...doubt, lasts: all.every((one) => one?.lasts === true) };
}

/** Of the client or the router before it; undefined: nobody asked for it lately. */
function macOf(ip: IpAddress, link: Link, node: NodeView): Uint8Array | undefined {
  const way = node.route({ destination: ip });
  const hop = (way.kind === 'route' ? way.route.gateway : undefined) ?? ip;
  const mac = node.neighbour(hop, link.index)?.lladdr;
  return mac && mac.length > 0 ? mac : undefined;
}

/** Where the bridge has learned an address; else all of its ports that lead to no pod of this node. */
function portsTo(mac: Uint8Array | undefined, bridge: Link, node: NodeView): readonly Link[] {
  const entries = mac ? node.bridges.forwarding(bridge.index, mac) : [];
  const learned = new Set(entries.filter(({ state }) => (state & NUD_PERMANENT) === 0).map(({ index }) => index));
  const ofPods = new Set([...node.localPods('IPv4'), ...node.localPods('IPv6')].map(({ outside }) => outside!.index));
  const ports = node.links.filter(({ master }) => master === bridge.index);
  const isPort = ({ index }: Link) => (learned.size > 0 ? learned.has(index) : !ofPods.has(index));
  return ports.filter(isPort);
}

interface Between {
  /** Somebody of the bridge, whose frames have no tags. */
  readonly from: Side;
  /** Where the other one is. */
  readonly port: Link;
  readonly mac: Uint8Array | undefined;
  readonly bridge: Link;
}

/** Both ways: what `from` sends leaves by the port, with a tag or without one, and what comes in there is of a VLAN that `from` takes. */
function between({ from, port, mac, bridge }: Between, node: NodeView): Cut | undefined {
  const { sends } = from;
  const { name } = port;
  const vlans = node.bridges.vlansOf(port.index);
  const member = vlans.find((vlan) => sends !== undefined && isInVlanRange(vlan, sends));
  if (sends === undefined || !member) return { ...notTaken(bridge, from, `${name} does not take`), lasts: true };
  const pvid = vlans.find((vlan) => vlan.pvid)?.first;
  const comesIn = vlans.flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, nth) => first + nth));
  if (!comesIn.some((vlan) => from.takes(vlan))) {
    return { ...notTaken(bridge, { name, sends: pvid }, `${from.name} does not take without a tag`), lasts: true };
  }
  if (member.untagged) {
    if (pvid !== undefined && from.takes(pvid)) return undefined;
    const { text, ...rest } = notTaken(bridge, { name, sends: pvid }, `${from.name} does not take without a tag`);
    return { ...rest, text: `${text}, unless they come in with one`, lasts: false };
  }
  if (hasTags(sends, pvid, { port, mac }, node)) return undefined;
  const { text, ...rest } = notTaken(bridge, from, `${name} sends on with a tag`);
  return { ...rest, text: `${text}: whether those are taken was not looked at`, lasts: false };
}

/** Whether frames with the tag of a VLAN came in by a port, of an address if it is known to the bridge. */
function hasTags(
  vlan: number,
  pvid: number | undefined,
  { port, mac }: Pick<Between, 'port' | 'mac'>,
  node: NodeView,
): boolean {
  if (vlan === pvid) return false;
  const own = mac ? node.bridges.forwarding(port.master, mac).filter(({ index }) => index === port.index) : [];
  const learned =
    own.length > 0 ? own : node.bridges.forwarding(port.master).filter(({ index }) => index === port.index);
  return learned.some((entry) => entry.vlan === vlan && (entry.state & NUD_PERMANENT) === 0);
}

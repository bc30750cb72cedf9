import { formatIp, type IpAddress, type IpFamily, ipFromBytes } from '../../core/index.ts';
import type { Link } from '../../netlink/route/index.ts';
import type { Packet } from '../packet/index.ts';
import { type BridgePort, IPS } from '../walk/index.ts';
import type { NodeView } from './node-view.ts';

/**
 * Whether rules see the frames of a bridge (br_nf_pre_routing, net/bridge/br_netfilter_hooks.c): all bridges show
 * theirs, or this one does.
 */
export function showsToRules(bridge: Link, { family }: { readonly family: IpFamily }, node: NodeView): boolean {
  const ofAll = node.sysctl(bridgeSetting(family));
  return ofAll === '1' || (ofAll !== undefined && bridge.showsToRules.includes(family));
}

/** Not there without br_netfilter. */
export function bridgeSetting(family: IpFamily): string {
  return `net/bridge/bridge-nf-call-${family === 'IPv4' ? 'iptables' : 'ip6tables'}`;
}

/** Links that lie upon another one, which may be a bridge that has seen the packet. */
const MAY_LIE_UPON_A_BRIDGE: ReadonlySet<string> = new Set(['vlan', 'macvlan', 'ipvlan', 'macsec']);

/** See `Host.bridgePort`. Ports of other than pods of this node have no name here. */
export function bridgePort(packet: Packet, direction: 'in' | 'out', node: NodeView): BridgePort {
  const { iif, ends } = packet;
  const link = iif && node.link(iif.index);
  if (!link) return undefined;
  if (link.kind !== 'bridge') return MAY_LIE_UPON_A_BRIDGE.has(link.kind) ? undefined : 'none';
  if (!showsToRules(link, packet, node)) return 'none';
  if (direction === 'in') return { name: portOf(ends.source, link, node) };
  // Before it is routed nobody has decided on a port, and what leaves by another link has none.
  if (packet.oif?.index !== link.index) return 'none';
  const isSwitched = wasTranslated(packet) || isSentDirectly(packet, link, node);
  if (isSwitched === undefined) return undefined;
  return isSwitched ? { name: portOf(ends.destination, link, node) } : 'none';
}

/** See `Host.switchedBy`. */
export function switchedBy(packet: Packet, node: NodeView): Link | undefined {
  const link = packet.iif && node.link(packet.iif.index);
  if (link?.kind !== 'bridge' || !showsToRules(link, packet, node)) return undefined;
  return podAt(packet.ends.destination, link, node) && isSentDirectly(packet, link, node) ? link : undefined;
}

/**
 * A frame whose destination is translated to somebody on its bridge is sent there by the bridge
 * (br_nf_pre_routing_finish, the same file).
 */
function wasTranslated({ connection }: Packet): boolean {
  if (connection === undefined || connection === 'untracked') return false;
  return (connection.status & (connection.direction === 'original' ? IPS.dstNat : IPS.srcNat)) !== 0;
}

/** Whether a pod sends a frame to somebody on its own bridge, and not to the node, which would route it back. */
function isSentDirectly({ ends: { source, destination } }: Packet, link: Link, node: NodeView): boolean | undefined {
  const pod = podAt(source, link, node);
  if (!pod || !destination.isKnown) return undefined;
  const out = node.routeIn(pod, { destination: ipFromBytes(destination.bytes), source: pod.address });
  return out.kind === 'route' ? out.route.gateway === undefined : undefined;
}

function portOf(address: Packet['ends']['source'], link: Link, node: NodeView): string | undefined {
  return podAt(address, link, node)?.outside?.name;
}

function podAt(address: Packet['ends']['source'], { index }: Link, node: NodeView) {
  if (!address.isKnown) return undefined;
  const ip: IpAddress = ipFromBytes(address.bytes);
  return node.podsAt(formatIp(ip)).find(({ seenAs }) => seenAs?.index === index);
}

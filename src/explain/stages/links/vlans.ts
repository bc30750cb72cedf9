import type { BridgeVlan, Link } from '../../../netlink/route/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Finding } from '../report.ts';

// VLANs of a bridge that looks at them: frames of pods have no tags, and pass to ports of the same VLAN that take its frames without one.

/** A port of a bridge, or the bridge's own one to this node. */
export interface Side {
  readonly name: string;
  /** The VLAN of frames that come from there; undefined: of none, and they are dropped. */
  readonly sends: number | undefined;
  takes(vlan: number): boolean;
}

/** What keeps the frames of two pods of one bridge from each other; undefined: no VLAN does. */
export function vlanBetween(one: LocalPod, other: LocalPod, node: NodeView): Finding | undefined {
  if (!one.seenAs?.vlanFiltering) return undefined;
  return apart(portOf(one.outside!, node), portOf(other.outside!, node), one.seenAs);
}

/** The same for a pod and this node, by the link that the node sends to it by. */
export function vlanToNode(pod: LocalPod, node: NodeView): Finding | undefined {
  const bridge = pod.seenAs;
  if (!bridge?.vlanFiltering) return undefined;
  const way = node.route({ destination: pod.address });
  const link = way.kind === 'route' ? node.link(way.route.outInterface) : undefined;
  // By another link than the bridge's own others have looked at it.
  if (!link || bridgeOf(link, node)?.index !== bridge.index) return undefined;
  return apart(portOf(pod.outside!, node), ownPort(bridge, link, node), bridge);
}

/** The bridge that a link of this node is, or that it is a VLAN of; undefined: it is neither. */
export function bridgeOf(link: Link, node: NodeView): Link | undefined {
  const found = link.kind === 'vlan' ? node.link(link.peerIndex) : link;
  return found?.kind === 'bridge' ? found : undefined;
}

/** The bridge's own port to this node, for what the node sends and takes by a link: the bridge's, or of one of its VLANs. */
export function ownPort(bridge: Link, link: Link, node: NodeView): Side {
  const { vlanId } = link;
  if (vlanId === undefined) return portOf(bridge, node);
  const own = node.bridges.vlansOf(bridge.index);
  return {
    name: link.name,
    sends: own.some((vlan) => isInVlanRange(vlan, vlanId)) ? vlanId : undefined,
    takes: (vlan) => vlan === vlanId && own.some((one) => isInVlanRange(one, vlan) && !one.untagged),
  };
}

function apart(one: Side, other: Side, bridge: Link): Finding | undefined {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    if (from.sends !== undefined && to.takes(from.sends)) continue;
    return notTaken(bridge, from, `${to.name} does not take without a tag`);
  }
  return undefined;
}

/** @param why who does what with frames of its VLAN */
export function notTaken(bridge: Link, { name, sends }: Pick<Side, 'name' | 'sends'>, why: string): Finding {
  const vlan = sends === undefined ? 'are of no VLAN (PVID)' : `are of VLAN ${sends}, which ${why}`;
  const text = `${bridge.name} looks at VLANs (vlan_filtering): frames of ${name} ${vlan}`;
  return { code: 'link-down', text, remedy: ['bridge vlan show'] };
}

/**
 * A port of a bridge for whoever is behind it without VLAN tags: what he sends is of the VLAN of its PVID, and he gets
 * those it leaves untagged.
 */
export function portOf({ index, name }: Link, node: NodeView): Side {
  const vlans = node.bridges.vlansOf(index);
  return {
    name,
    sends: vlans.find(({ pvid }) => pvid)?.first,
    takes: (vlan) => vlans.some((one) => one.untagged && isInVlanRange(one, vlan)),
  };
}

/** Whether a VLAN is among those that a bridge’s entry stands for. */
export function isInVlanRange({ first, last }: BridgeVlan, vlan: number): boolean {
  return first <= vlan && vlan <= last;
}

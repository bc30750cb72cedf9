import { formatMac, shellWord } from '../../../core/index.ts';
import type { Link, Neighbour } from '../../../netlink/route/index.ts';
import { NTF_STICKY, NUD_NOARP, NUD_PERMANENT } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import { isUnknown, type Unheard } from '../pods/asked-for.ts';

/**
 * What a bridge's forwarding database keeps from this node that a pod sends to; undefined: nothing.
 *
 * @param isPassed rules in the bridge translate the pod's frames, and lead them on as long as this node knows its neighbours: it hears no
 * answer when it asks for those
 */
export function untakenByBridge(
  { seenAs }: LocalPod,
  { isPassed }: { readonly isPassed: boolean },
  node: NodeView,
): Unheard | undefined {
  if (seenAs?.kind !== 'bridge') return undefined;
  if (node.bridges.forwarding(seenAs.index, seenAs.address).some(isLocal)) return undefined;
  const [bridge, mac] = [seenAs.name, formatMac(seenAs.address)];
  const text = `${bridge} does not take frames to its own MAC address ${mac} for this node's (bridge fdb)`;
  return { text, remedy: [`bridge fdb replace ${mac} dev ${shellWord(bridge)} self permanent`], lasts: !isPassed };
}

function isLocal({ state }: Neighbour): boolean {
  return (state & NUD_PERMANENT) !== 0;
}

/**
 * What a bridge's forwarding database keeps from a pod; undefined: nothing. An entry that is not local moves to the
 * port by which the pod is heard next, unless it is sticky or that port does not learn (net/bridge/br_fdb.c,
 * br_fdb_update); frames to a local one end at this node if they come in by a port (br_input.c), and are sent by its
 * port if they do not.
 *
 * @param byPort frames to it come from another port of the bridge, and not from this node
 */
export function misled(
  { ip, inside, outside, seenAs }: LocalPod,
  { byPort }: { readonly byPort: boolean },
  node: NodeView,
): Unheard | undefined {
  if (seenAs?.kind !== 'bridge') return undefined;
  const { learning = true, unicastFlood = true, proxyArp = false } = outside!.bridgePort ?? {};
  const bridge = seenAs.name;
  const entries = node.bridges.forwarding(seenAs.index, inside.address);
  const mac = formatMac(inside.address);
  const enter = `bridge fdb replace ${mac} dev ${shellWord(outside!.name)} master dynamic`;
  const wrong = entries.find((entry) => entry.index !== outside!.index || (byPort && isLocal(entry)));
  if (wrong) {
    const where = isLocal(wrong) ? 'takes for its own' : `sends to ${node.link(wrong.index)?.name ?? 'another port'}`;
    const isFixed = (wrong.state & NUD_NOARP) !== 0 && !learning;
    const lasts = isLocal(wrong) || (wrong.flags & NTF_STICKY) !== 0 || isFixed;
    return { text: `${bridge} ${where} what is for ${mac}, the pod ${ip} (bridge fdb)`, remedy: [enter], lasts };
  }
  if (entries.length > 0 || (unicastFlood && !proxyArp)) return undefined;
  const text = `the port ${outside!.name} gets no frames to unknown addresses, and ${bridge} has no entry for ${mac}, the pod ${ip}`;
  return { text, remedy: [proxyArp ? withoutProxyArp(outside!) : enter], lasts: !learning };
}

/**
 * Why who does not know a pod does not find it: its port has `proxy_arp`, and what looks for the pod is flooded
 * (br_flood, net/bridge/br_forward.c).
 *
 * @param by the pod that asks; undefined: this node does. At a port of that kind the bridge answers for those that this node knows
 */
export function unflooded(
  { ip, address, outside, seenAs }: LocalPod,
  entry: Neighbour | undefined,
  by: LocalPod | undefined,
): Unheard | undefined {
  if (!outside?.bridgePort?.proxyArp || !isUnknown(entry)) return undefined;
  const toListeners = address.family === 'IPv6' && seenAs?.toListenersAlone === true;
  const text = `the port ${outside.name} gets no frames that are flooded (proxy_arp): who looks for the pod ${ip} is not heard`;
  return { text, remedy: [withoutProxyArp(outside)], lasts: !toListeners && !by?.outside?.bridgePort?.proxyArp };
}

function withoutProxyArp({ name }: Pick<Link, 'name'>): string {
  return `ip link set dev ${shellWord(name)} type bridge_slave proxy_arp off`;
}

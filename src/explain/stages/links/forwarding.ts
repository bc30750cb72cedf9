import { formatMac } from '../../../core/index.ts';
import type { Neighbour } from '../../../netlink/route/index.ts';
import { NTF_STICKY, NUD_NOARP, NUD_PERMANENT } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Unheard } from '../pods/asked-for.ts';

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
export function misled(
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

import { formatIp, formatMac, type IpAddress, sameBytes, shellWord } from '../../../core/index.ts';
import { IFF_NOARP } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { isFixed, isUnknown, type Unheard, unansweredByPod } from '../pods/asked-for.ts';
import type { Report } from '../report.ts';
import { isBridged, isSwitched } from './bridge.ts';
import { undiscovered } from './discovery.ts';
import { unflooded } from './forwarding.ts';
import { hasMac, nextOf } from './next-hop.ts';

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
 * Whom this node takes for a client, where its entry is wrong: answers that it routes are lost, and of IPv6 those to who asks for this
 * node. Of an entry that is not fixed it asks anew before it gives up.
 */
function mistaken(client: LocalPod, isBridged: boolean, node: NodeView): Unheard | undefined {
  const { address, inside, ip, seenAs } = client;
  const entry = node.neighbour(address, seenAs!.index);
  if (isUnknown(entry) || sameBytes(entry!.lladdr, inside.address)) return undefined;
  if (isBridged && address.family === 'IPv4') return undefined;
  const { lladdr } = entry!;
  const text = `this node takes ${formatMac(lladdr)} for the pod ${ip}, which has ${formatMac(inside.address)}`;
  return {
    text,
    remedy: [`ip neigh del ${ip} dev ${shellWord(seenAs!.name)}`],
    lasts: isFixed(entry) && !isBridged && !hasMac(client, lladdr),
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
  const silent = unansweredByPod(client, entry, by, node) ?? unflooded(client, entry, by);
  const next = nextOf(client, to, node);
  if (!silent || !next || (!silent.lasts && !isUnknown(entry))) return undefined;
  if ((inside.flags & IFF_NOARP) !== 0 || isFixed(next.entry)) return silent;
  const asksFirst = isUnknown(next.entry);
  if (asksFirst && isAskedByClient) return undefined;
  return { ...silent, lasts: silent.lasts && !asksFirst && !isAskedByClient };
}

/** Why this node does not find a client that answers it; undefined: it knows it, or learns of it when the client asks for the node. */
function unsought(client: LocalPod, to: IpAddress, node: NodeView): Unheard | undefined {
  const next = nextOf(client, to, node);
  if (!next || isUnknown(next.entry)) return undefined;
  return undiscovered(client, { asks: 'node', from: to }, node.neighbour(client.address, client.seenAs!.index), node);
}

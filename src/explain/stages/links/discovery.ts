import { formatIp, type IpAddress, ipEquals, parseIp, shellWord } from '../../../core/index.ts';
import type { Link, Neighbour } from '../../../netlink/route/index.ts';
import { IFA_F_OPTIMISTIC, IFA_F_TENTATIVE, RT_SCOPE_LINK } from '../../../netlink/uapi/index.ts';
import { hostOf, interfaceOf, type LocalPod, type NodeView, showsToRules } from '../../node/index.ts';
import type { NeighbourMessage } from '../../packet/index.ts';
import { type Crossing, walkNeighbourMessage } from '../../walk/index.ts';
import { placeOf, showing } from '../place.ts';
import { isUnknown } from '../pods/asked-for.ts';

// Neighbours of IPv6 find each other by ICMPv6, which is sent from an address of the link, and passes this node's rules
// as any packet does.

/** Who looks for whom on the link of a pod. */
export type Search =
  | { readonly asks: 'pod'; readonly for: IpAddress }
  /** For a packet with this source; undefined: it is not known. */
  | { readonly asks: 'node'; readonly from: IpAddress | undefined }
  /** Of two pods of one bridge. */
  | { readonly asks: 'other pod'; readonly other: LocalPod };

/** Messages that are stopped, or perhaps. */
export interface Stopped {
  readonly text: string;
  readonly remedy: readonly string[];
  /** Not only perhaps. */
  readonly lasts: boolean;
}

/**
 * What keeps a pod and this node, or two pods, from finding each other.
 *
 * @param entry what the one that asks knows of the other
 * @returns undefined: it is known already, or nothing is in the way
 */
export function undiscovered(
  pod: LocalPod,
  search: Search,
  entry: Neighbour | undefined,
  node: NodeView,
): Stopped | undefined {
  if (pod.address.family === 'IPv4' || !isUnknown(entry) || !pod.seenAs) return undefined;
  const unasked = search.asks === 'node' ? unaskedByNode(pod, search.from, node) : undefined;
  if (unasked) return unasked;
  return stoppedByRules(pod, search, node) ?? unheard(pod, search, node);
}

function stoppedByRules(pod: LocalPod, search: Search, node: NodeView): Stopped | undefined {
  if (search.asks === 'other pod' && !showsToRules(pod.seenAs!, pod.address, node)) return undefined;
  const { sources } = node.rulesFor('IPv6');
  for (const [message, crossing] of messages(pod.address, search)) {
    const branches = walkNeighbourMessage(message, crossing, interfaceOf(pod.seenAs!), sources, hostOf(node));
    const stopped = branches.filter(({ result }) => result.end.kind !== 'accept');
    const [first] = stopped;
    if (!first) continue;
    const { end, steps } = first.result;
    const last = end.kind === 'cannot tell' ? end.at : steps.at(-1);
    const lasts =
      stopped.length === branches.length && stopped.every(({ result }) => result.end.kind !== 'cannot tell');
    const what = `neighbour ${message.kind}s (ICMPv6), by which ${who(search)} ${pod.ip} find each other,`;
    const by = last ? `by ${placeOf(last)}` : 'by rules';
    return {
      text: `${what} ${lasts ? 'are dropped' : 'may be dropped'} ${by}`,
      remedy: last ? [showing(last)] : [],
      lasts,
    };
  }
  return undefined;
}

/** Why this node asks nobody for a pod, by the link that it sends to it by. */
function unaskedByNode({ ip, address, seenAs }: LocalPod, from: IpAddress | undefined, node: NodeView) {
  const way = node.route({ destination: address });
  const link = (way.kind === 'route' ? node.link(way.route.outInterface) : undefined) ?? seenAs!;
  if (!isUnknown(node.neighbour(address, link.index)) || asksFrom(link, from, node)) return undefined;
  return {
    text: `${link.name} has no link-local address from which this node could ask for the pod ${ip}, which it does not know`,
    remedy: [`ip -6 address add fe80::1/64 dev ${shellWord(link.name)}`],
    lasts: from !== undefined,
  };
}

/** Whom a bridge sends no questions, as it has not heard that he listens for them (br_multicast_flood, net/bridge/br_forward.c). */
function unheard({ ip, address, outside, seenAs }: LocalPod, search: Search, node: NodeView): Stopped | undefined {
  if (!seenAs?.toListenersAlone) return undefined;
  const [listener, asked] = search.asks === 'pod' ? [seenAs, search.for] : [outside!, address];
  if (node.bridges.listensTo(solicitedNode(asked), listener.index)) return undefined;
  const who = search.asks === 'pod' ? 'this node' : `the pod ${ip} at ${listener.name}`;
  return {
    text: `${seenAs.name} sends multicast to listeners alone (mcast_snooping, with a querier), and has not heard that ${who} listens to those who look for ${formatIp(asked)}`,
    remedy: [`bridge mdb show dev ${shellWord(seenAs.name)}`],
    lasts: false,
  };
}

/**
 * Whether this node can ask for neighbours of IPv6: it does with the source of the packet, where that is an address of
 * the link, else with a link-local one, else not at all (ndisc_solicit, ndisc_send_ns, net/ipv6/ndisc.c).
 *
 * @param from the source; undefined: it is not known
 */
export function asksFrom({ index }: Link, from: IpAddress | undefined, node: NodeView): boolean {
  return node.addresses.some(
    (own) =>
      own.index === index &&
      own.address.family === 'IPv6' &&
      (own.flags & (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC)) === 0 &&
      (own.scope === RT_SCOPE_LINK || (from !== undefined && ipEquals(own.address, from))),
  );
}

function who(search: Search): string {
  return search.asks === 'other pod' ? `the pods ${search.other.ip} and` : 'this node and the pod';
}

/** The question, and what answers it. */
function messages(pod: IpAddress, search: Search): readonly (readonly [NeighbourMessage, Crossing])[] {
  switch (search.asks) {
    case 'pod':
      return [
        [{ kind: 'solicitation', source: pod, destination: solicitedNode(search.for) }, 'in'],
        [{ kind: 'advertisement', source: search.for, destination: pod }, 'out'],
      ];
    case 'node':
      // Which of its addresses the node asks from is not known.
      return [
        [{ kind: 'solicitation', source: undefined, destination: solicitedNode(pod) }, 'out'],
        [{ kind: 'advertisement', source: pod, destination: parseIp('::') }, 'in'],
      ];
    case 'other pod': {
      const other = parseIp(search.other.ip);
      return [
        [{ kind: 'solicitation', source: other, destination: solicitedNode(pod) }, 'bridged'],
        [{ kind: 'advertisement', source: pod, destination: other }, 'bridged'],
      ];
    }
  }
}

/** The group in which whoever has an address listens: ff02::1:ff00:0/104 and its last 24 bits (RFC 4291). */
function solicitedNode({ bytes }: IpAddress): IpAddress {
  const [a, b, c] = [...bytes.slice(13)].map((byte) => byte.toString(16).padStart(2, '0'));
  return parseIp(`ff02::1:ff${a}:${b}${c}`);
}

import { ipFromBytes, readU32 } from '../../../core/index.ts';
import { nextHopsOf, type RoutedFlow, type RouteQuestion } from '../../../netlink/route/index.ts';
import { isSameWay, type LocalPod, type NodeView } from '../../node/index.ts';
import type { Origin, Walk } from '../../walk/index.ts';
import type { Asked } from '../asked.ts';
import { refusedFrom } from '../here/refused-from.ts';
import { detourOf } from '../pods/routes.ts';
import type { Finding } from '../report.ts';
import { type LaterPackets, ledAstray, markedWith } from '../routes/astray.ts';
import { markOf } from './later-walks.ts';

// Where marks lead what comes after a connection's first packet, about which routes were asked (lookAtRoutes).

/** Packets, and what routes are asked about them. */
export interface Marked extends LaterPackets {
  /** The mark with which routes were asked about the first packet; undefined: none. */
  readonly firstMark?: number | undefined;
  readonly origin: Origin;
  readonly flow: RoutedFlow | undefined;
  /** IPVS sends them on of its own, whoever they are from. */
  readonly byIpvs: boolean;
}

/**
 * Where a mark, or the lack of one, leads packets that routes were not asked about.
 *
 * @param pod whom they are for, where that is a pod of this node
 * @returns words where it is not known whether they come to whom they are for; undefined: they do
 */
export function markedAstray(
  packets: Marked,
  walk: Walk,
  pod: LocalPod | undefined,
  asked: Asked,
  node: NodeView,
): Finding | string | undefined {
  const { end } = walk;
  const mark = markOf(walk);
  if (isAskedFor(packets, mark) || (end.kind !== 'no route' && end.kind !== 'sent')) return undefined;
  const outInterface = end.kind === 'sent' ? end.by.index : undefined;
  const led = () => ledAstray(packets, { mark, outInterface }, pod, asked, node);
  if (!pod || outInterface === undefined) return led();
  const question = questionOf(packets, walk);
  const [route, written] = [node.route(question), node.route({ ...question, matched: true })].map((answer) =>
    answer.kind === 'route' ? answer.route : undefined,
  );
  const { to, who } = packets;
  const detour = (route && detourOf(route, to)) ?? (written && detourOf(written, to));
  const unsure = detour && `${markedWith(mark, who)} ${detour}`;
  // The link is that of any of them.
  if (written && nextHopsOf(written).length > 1) return unsure;
  return led() ?? unsure;
}

/** In words, that a mark leads packets to somebody elsewhere by another way than the first one; undefined: none does. */
export function otherThanFirst(packets: Marked, walk: Walk, node: NodeView): string | undefined {
  const mark = markOf(walk);
  if (isAskedFor(packets, mark) || walk.end.kind !== 'sent') return undefined;
  const question = questionOf(packets, walk);
  if (isSameWay(node.route(question), node.route({ ...question, mark: packets.firstMark }))) return undefined;
  return `${markedWith(mark, packets.who)} go another way than the first: whether they arrive was not looked at`;
}

/** What the kernel has against packets with a mark, by whom they are from and by which link they come in; undefined: nothing. */
export function markedRefused(packets: Marked, { arrived }: Walk, node: NodeView): Finding | undefined {
  if (!arrived?.mark.isKnown || !arrived.source.isKnown || !arrived.destination.isKnown) return undefined;
  const { code, who, origin, flow } = packets;
  const mark = readU32(arrived.mark.bytes, 0);
  if (isAskedFor(packets, mark) || origin === 'this host') return undefined;
  const [from, to] = [ipFromBytes(arrived.source.bytes), ipFromBytes(arrived.destination.bytes)];
  const inInterface = origin.index;
  const answer = node.route({ destination: to, source: from, inInterface, mark, flow });
  if (answer.kind === 'route') return undefined;
  const refused = refusedFrom({ from, to, inInterface, mark, code }, answer.errno, node);
  return { ...refused, text: `${markedWith(mark, who)} are lost: ${refused.text}` };
}

const isAskedFor = ({ firstMark = 0 }: Marked, mark: number) => mark === 0 && firstMark === 0;

/** Which way they go, with the mark they were routed by. */
function questionOf({ to, origin, flow, byIpvs }: Marked, walk: Walk): RouteQuestion {
  const plain = { destination: to, mark: markOf(walk) || undefined, flow };
  if (byIpvs || !walk.routedFrom.isKnown) return plain;
  const inInterface = origin === 'this host' ? undefined : origin.index;
  return { ...plain, source: ipFromBytes(walk.routedFrom.bytes), inInterface };
}

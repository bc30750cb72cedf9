import { formatIp, ipEquals, protocolWord, readU32 } from '../../../core/index.ts';
import { networkOrder16 } from '../../../netlink/nftables/index.ts';
import type { Branch } from '../../choices.ts';
import { type NodeView, startOf } from '../../node/index.ts';
import { KnownBytes } from '../../packet/index.ts';
import { type Flow, type Later, type Origin, type Walk, walkAnswer, walkNext } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { originOf as clientOrigin, firstOf } from '../rules/first-packet.ts';
import { hearingOf } from '../sockets/hearing.ts';

// The walks of what comes after a connection's first packet.

const hostOrder32 = (value: number) => KnownBytes.of(new Uint8Array(Uint32Array.of(value).buffer));

const NO_MARK = hostOrder32(0);

/** Ports of clients are not known; the walk needs one. */
export const ANY_PORT = 40_000;

/** The client's packets after the first; of TCP they have data, unless they are `bare`. */
export function nextOf(
  asked: Asked,
  flow: Flow,
  later: Later<'later' | 'bare'>,
  node: NodeView,
): readonly Branch<Walk>[] {
  return walkNext(flow, later, startOf(clientOrigin(asked), asked.target.family, node)).branches;
}

/** The flow that conntrack makes of a connection whose first packet came to `goal`: what later packets are translated by. */
export function flowTo(asked: Asked, goal: Goal, node: NodeView): Flow {
  const { ip, port, masqueraded, source, byIpvs, untracked, flowMark } = goal;
  const { client, target } = asked;
  return {
    first: firstOf(asked, node),
    translated: {
      ...(!ipEquals(ip, target.ip) && { destination: KnownBytes.of(ip.bytes) }),
      ...(port !== target.port && { destinationPort: KnownBytes.of(networkOrder16(port)) }),
      ...(masqueraded !== false && {
        source: source ? KnownBytes.of(source.bytes) : KnownBytes.unknown(client.ip.bytes.length),
        sourcePort: KnownBytes.unknown(2),
      }),
    },
    untracked,
    byIpvs,
    mark: flowMark,
    answersBy: markOfProcess(asked, goal, node),
  };
}

/**
 * The mark that a process of this node gives its answers: its socket's own (SO_MARK), else, of TCP and where that is
 * set, the one it is asked with (inet_request_mark, include/net/inet_sock.h, for both families). Undefined: none.
 */
function markOfProcess({ target }: Asked, goal: Goal, node: NodeView): KnownBytes | undefined {
  if (!node.isOwnAddress(formatIp(goal.ip))) return undefined;
  const { taking } = hearingOf(goal, target.protocol, undefined, node);
  const isKept = target.protocol === 'TCP' && node.sysctl('net/ipv4/tcp_fwmark_accept') === '1';
  const marks = taking.map(
    ({ mark }) => (mark === undefined ? isKept && goal.heardMark : hostOrder32(mark)) || NO_MARK,
  );
  const [first, ...others] = marks;
  return first && others.reduce((one, other) => one.common(other), first);
}

/** The packets of the answer from `goal` to the client, as they begin at `origin`. */
export function answerOf(
  asked: Asked,
  goal: Goal,
  later: Later,
  flow: Flow,
  origin: Origin,
  node: NodeView,
): readonly Branch<Walk>[] {
  const { client, target } = asked;
  const protocol = protocolWord(target.protocol);
  const ports = { sourcePort: goal.port, destinationPort: ANY_PORT };
  const answer = { protocol, source: goal.ip, destination: client.ip, ...ports };
  return walkAnswer(answer, later, flow, startOf(origin, target.family, node)).branches;
}

/** The mark that packets leave with their flow, whichever way they took; what differs is not known. */
export function markAfter(branches: readonly Branch<Walk>[], before = KnownBytes.unknown(4)): KnownBytes {
  const marks = branches.flatMap(({ result: { packet, end } }) => {
    if (end.kind === 'drop' || end.kind === 'reject') return [];
    return [typeof packet.connection === 'object' ? packet.connection.mark : before];
  });
  const [first = before, ...others] = marks;
  return others.reduce((one, other) => one.common(other), first);
}

/** The mark a packet was routed by last; 0 where there is none, or it is not known. */
export function markOf({ routedBy }: Walk): number {
  return routedBy.isKnown ? readU32(routedBy.bytes, 0) : 0;
}

/** By which link an answer comes in; undefined: it is not known. */
export function originOf({ ip }: Goal, node: NodeView): Origin | undefined {
  if (node.isOwnAddress(formatIp(ip))) return 'this host';
  const link = node.podsAt(formatIp(ip))[0]?.seenAs ?? node.wayOut(ip)?.link;
  return link && { index: link.index, name: link.name };
}

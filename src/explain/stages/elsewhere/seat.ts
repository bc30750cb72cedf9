import { formatIp, formatIpPort, type IpAddress, ipEquals } from '../../../core/index.ts';
import { type Attempt, type AttemptResult, type NodeView, startOf, tryAttempts } from '../../node/index.ts';
import { walkPacket } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { placeOf } from '../place.ts';
import { firstOf, originOf } from '../rules/first-packet.ts';
import { goalOf } from '../rules/ways.ts';

/** From where an attempt is made. */
export interface Seat {
  /** Undefined: this node. */
  readonly netns: string | undefined;
  readonly source: IpAddress;
}

/** One attempt, as the client would make it, or from the place of who masquerades it. */
export interface Trial extends Omit<Attempt, 'source'> {
  readonly seat: Seat;
}

/** What came of an attempt. */
export interface Tried {
  readonly goal: Goal;
  readonly seat: Seat;
  readonly result: AttemptResult;
}

/** From where the endpoint sees the connection come; undefined: nobody here can do that. */
export function seatOf({ client, target }: Asked, { source }: Goal, node: NodeView): Seat | undefined {
  if (target.protocol === 'SCTP') return undefined;
  const ip = source ?? client.ip;
  if (client.kind === 'pod' && ipEquals(ip, client.ip)) return { netns: client.pod.netns, source: ip };
  return node.isOwnAddress(formatIp(ip)) ? { netns: undefined, source: ip } : undefined;
}

/**
 * What rules of this node do to an attempt, which goes to the endpoint itself, where that is not what they do to connections to a Service:
 * they may ask whether something was translated, who sends it, and where to.
 *
 * @returns words; undefined: they let it through to the endpoint
 */
export function hindranceOf(asked: Asked, goal: Goal, { netns, source }: Seat, node: NodeView): string | undefined {
  const { target } = asked;
  // It is chosen by the addresses of who sends, before that one is masqueraded.
  const hops = 1 + (node.wayOut(goal.ip)?.others.length ?? 0);
  if (hops > 1 && !isSpread(source, node) && !ipEquals(source, asked.client.ip))
    return `an attempt from this node may get another of ${hops} next hops`;
  const isDirect = goal.address === formatIpPort(target.ip, target.port);
  if (isDirect && netns !== undefined) return undefined;
  const attempt: Asked = {
    ...asked,
    target: { ...target, ip: goal.ip, port: goal.port },
    client: netns === undefined ? { kind: 'node', ip: source } : asked.client,
  };
  const { branches } = walkPacket(firstOf(attempt, node), startOf(originOf(attempt), target.family, node));
  for (const { result } of branches) {
    const { end, steps } = result;
    if (end.kind === 'drop' || end.kind === 'reject')
      return `${placeOf(steps.at(-1)!)} stops an attempt from this node`;
    if (end.kind === 'cannot tell') return `what becomes of an attempt is not known: ${end.about}`;
    const led = goalOf(result)?.address;
    if (led !== goal.address) return `rules lead an attempt to ${led ?? 'somebody else'}`;
  }
  return undefined;
}

/** FIB_MULTIPATH_HASH_FIELD_SRC_PORT, <net/ip_fib.h>. */
const BY_SOURCE_PORT = 0x10;

/**
 * Whether connections to an address, all from the same one, get different ones of several next hops: by their port (fib_multipath_hash,
 * net/ipv4/route.c) or their label (rt6_multipath_hash, net/ipv6/route.c).
 */
export function isSpread({ family }: IpAddress, node: NodeView): boolean {
  if (family === 'IPv6') return true;
  const setting = (name: string) => Number(node.sysctl(`net/ipv4/fib_multipath_hash_${name}`) ?? 0);
  return setting('policy') === 1 || (setting('policy') === 3 && (setting('fields') & BY_SOURCE_PORT) !== 0);
}

/** Makes attempts, all of a namespace at once. Returns a result for each. Throws ERR_EXEC. */
export function tryAll(trials: readonly Trial[]): AttemptResult[] {
  const results = new Map<Trial, AttemptResult>();
  for (const netns of new Set(trials.map(({ seat }) => seat.netns))) {
    const here = trials.filter(({ seat }) => seat.netns === netns);
    const attempts = here.map(({ seat, ...attempt }): Attempt => ({ ...attempt, source: seat.source }));
    tryAttempts(netns, attempts).forEach((result, index) => {
      results.set(here[index]!, result);
    });
  }
  return trials.map((trial) => results.get(trial)!);
}

/** Whether there is somebody: a refusal is as good as a connection. */
export function isAnswer(result: AttemptResult): boolean {
  return result === 'connected' || result === 'answered' || result === 'ECONNREFUSED';
}

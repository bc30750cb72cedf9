import { addressBits, formatIp, formatIpPort, type IpAddress, ipEquals } from '../../../core/index.ts';
import type { Listener } from '../../../netlink/sock-diag/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Goal, Target } from '../asked.ts';

/** The sockets where packets of a goal arrive. */
export interface Hearing {
  readonly goal: Goal;
  readonly protocol: Target['protocol'];
  /** Undefined: this node itself. */
  readonly pod: LocalPod | undefined;
  /** The same in words. */
  readonly where: string;
  /** All of the protocol, */
  readonly listeners: readonly Listener[];
  /** those at the port, */
  readonly atPort: readonly Listener[];
  /** and those from which the kernel chooses. */
  readonly taking: readonly Listener[];
}

/**
 * @param pod undefined: the node itself
 * @throws what reading the kernel throws
 */
export function hearingOf(
  goal: Goal,
  protocol: Target['protocol'],
  pod: LocalPod | undefined,
  node: NodeView,
): Hearing {
  const listeners = node.listeners(protocol, pod?.netns);
  const atPort = listeners.filter((one) => one.port === goal.port);
  const where = pod ? `pod ${pod.ip}` : 'this node';
  return { goal, protocol, pod, where, listeners, atPort, taking: takenBy(atPort, goal.ip) };
}

/** Those with no room for one more connection (sk_acceptq_is_full); of UDP what waits is no connection. */
export function fullOf({ taking, protocol }: Hearing): readonly Listener[] {
  return protocol === 'UDP' ? [] : taking.filter(({ queued, queueLimit }) => queued > queueLimit);
}

/** Whether a process listens at an own address and port. @param netns of a pod. @default the node's */
export function isHeardAt(
  { ip, port }: Pick<Goal, 'ip' | 'port'>,
  protocol: Target['protocol'],
  node: NodeView,
  netns?: string,
): boolean {
  return node.listeners(protocol, netns).some((one) => one.port === port && acceptsAddress(one, ip));
}

/**
 * Whether somebody may listen at an address and port: a pod of this node or a process that does, or whoever has an
 * address that is not behind a link of its pods.
 */
export function mayBeHeardAt(goal: Goal, protocol: Target['protocol'], node: NodeView): boolean {
  const { ip } = goal;
  const pods = node.podsAt(formatIp(ip));
  if (pods.length > 0) return pods.some(({ netns }) => isHeardAt(goal, protocol, node, netns));
  if (node.isOwnAddress(formatIp(ip))) return isHeardAt(goal, protocol, node);
  const way = node.route({ destination: ip });
  return (
    way.kind === 'route' && !node.localPods(ip.family).some(({ seenAs }) => seenAs?.index === way.route.outInterface)
  );
}

/**
 * Of the sockets at a port those that the kernel chooses from: one of the address itself is better than one of all, and one of all of
 * its family better than a dual one (compute_score, net/ipv4/inet_hashtables.c).
 */
function takenBy(atPort: readonly Listener[], ip: IpAddress): readonly Listener[] {
  const taking = atPort.filter((one) => acceptsAddress(one, ip));
  const own = taking.filter(({ address }) => ipEquals(address, ip));
  const ofFamily = taking.filter(({ address }) => address.family === ip.family);
  return [own, ofFamily, taking].find((some) => some.length > 0) ?? [];
}

/** Whether a listener gets what comes for an address: the one it is bound to, any of its family, or any of IPv4 for a dual one. */
export function acceptsAddress({ address, dual }: Listener, ip: IpAddress): boolean {
  if (address.family !== ip.family) return dual && ip.family === 'IPv4';
  return (
    ipEquals(address, { family: ip.family, bytes: new Uint8Array(addressBits(ip.family) / 8) }) || ipEquals(address, ip)
  );
}

/** `10.0.0.1:80` */
export function listenerText({ address, port }: Listener): string {
  return formatIpPort(address, port);
}

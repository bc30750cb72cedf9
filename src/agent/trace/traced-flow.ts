import { type IpAddress, ipEquals } from '../../core/index.ts';
import type { FlowDirection } from '../../netlink/conntrack/index.ts';
import type { NftFamily, NftHook } from '../../netlink/nftables/index.ts';
import type { TracedPacket } from './read-packet.ts';

/** A rule, or the policy of a chain, that ended the way of a packet. */
export interface Drop {
  readonly family: NftFamily;
  readonly table: string;
  readonly chain: string;
  /** Undefined: the chain's policy. */
  readonly handle: number | undefined;
}

/** SKB_DROP_REASON_NOT_SPECIFIED: nobody has told the kernel's code to give a reason there. */
export const UNSPECIFIED = 'NOT_SPECIFIED';

/** What the kernel's drop monitor says of a packet. */
export interface KernelDrop {
  /** `NO_SOCKET` */
  readonly reason: string;
  /** The kernel's function. */
  readonly place: string;
}

/** How far packets of one direction came. */
export interface Way {
  /** `SYN`, `SYN-ACK`, `RST`; back also `ICMP port-unreachable from 10.244.1.9`; empty: not TCP, or not known. */
  flags: string;
  /** Interface numbers; undefined: not seen, or none, as for what this node sends. */
  iif: number | undefined;
  oif: number | undefined;
  /** The last place where it was seen; undefined: not seen. */
  last: { readonly hook: NftHook; readonly late: boolean } | undefined;
  /** Left the node, or was handed to it. */
  through: 'out' | 'in' | undefined;
  drop: Drop | undefined;
  /** Why the kernel dropped one, in whatever namespace of the machine. */
  kernelDrop: KernelDrop | undefined;
}

/** What was seen of a flow. Times are monotonic milliseconds. */
export interface TracedFlow {
  readonly protocol: number;
  readonly original: FlowDirection;
  /** When its first packet was seen here. */
  readonly at: number;
  /** Where it was translated to; undefined: it was not, as far as was seen. */
  endpoint: { readonly address: IpAddress; readonly port: number } | undefined;
  /** The source that the endpoint sees, where it is another one. */
  maskedAs: IpAddress | undefined;
  readonly there: Way;
  readonly back: Way;
  /** When the first packet back was seen. */
  answeredAt: number | undefined;
  /** It was under way before the trace began. */
  readonly old: boolean;
}

/** What became of a flow, the worst first. */
export type Fate = 'dropped' | 'reply-dropped' | 'lost' | 'refused' | 'reply-lost' | 'no-reply' | 'answered';

/** What became of a flow by what was seen until now. Pure. */
export function fateOf({ there, back, answeredAt }: TracedFlow): Fate {
  const isError = back.flags.startsWith('ICMP');
  const isReset = back.flags.includes('RST');
  // They say that a packet was taken here, and less well than who took it: rules refuse by either.
  if ((isError || isReset) && there.drop && !there.through) return 'dropped';
  if (isError && there.last && !there.through) return 'lost';
  if (back.through || (answeredAt !== undefined && !back.last)) {
    return isError || isReset ? 'refused' : 'answered';
  }
  if (back.drop) return 'reply-dropped';
  if (back.last) return 'reply-lost';
  if (there.drop) return 'dropped';
  return there.through || !there.last ? 'no-reply' : 'lost';
}

/** Nothing more is to be learnt of it. */
export function isComplete(flow: TracedFlow): boolean {
  return flow.back.through !== undefined || flow.back.drop !== undefined || flow.there.drop !== undefined;
}

/** Why the kernel dropped a packet of a flow that no rule ended; undefined: it was answered, or nothing is known. Pure. */
export function kernelDropOf(flow: TracedFlow): KernelDrop | undefined {
  const fate = fateOf(flow);
  if (fate === 'answered' || fate === 'dropped' || fate === 'reply-dropped') return undefined;
  const told = [flow.there.kernelDrop, flow.back.kernelDrop].filter((drop) => drop !== undefined);
  return told.find(({ reason }) => reason !== UNSPECIFIED) ?? told[0];
}

/** The ends as they are of packets in the other direction. */
export const turned = ({ source, sourcePort, destination, destinationPort }: FlowDirection): FlowDirection => ({
  source: destination,
  sourcePort: destinationPort,
  destination: source,
  destinationPort: sourcePort,
});

/** Whether a packet is of a flow in this direction, before or behind translation, by what was seen of that. Pure. */
export function isOf(flow: TracedFlow, direction: 'there' | 'back', packet: TracedPacket): boolean {
  return packet.protocol === flow.protocol && isThere(flow, direction === 'there' ? packet : turned(packet));
}

function isThere({ original, endpoint, maskedAs }: TracedFlow, ends: FlowDirection): boolean {
  const { source, sourcePort, destination, destinationPort } = original;
  const isTo = (ip: IpAddress, port: number) => ipEquals(ends.destination, ip) && ends.destinationPort === port;
  return (
    (isTo(destination, destinationPort) || (endpoint !== undefined && isTo(endpoint.address, endpoint.port))) &&
    // Masquerading may take another port.
    ((maskedAs !== undefined && ipEquals(ends.source, maskedAs)) ||
      (ipEquals(ends.source, source) && ends.sourcePort === sourcePort))
  );
}

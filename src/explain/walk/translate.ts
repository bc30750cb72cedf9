import { type Connection, type Ends, KnownBytes, type Packet } from '../packet/index.ts';
import type { Outcome } from './outcome.ts';
import type { Host } from './source.ts';

/** The ends of a packet that a translation changes. */
export type NewEnds = { -readonly [End in keyof Ends]?: Ends[End] };

/** The two translations of a flow. Each is decided once, by its first packet. */
export type Manipulation = 'source' | 'destination';

/** enum ip_conntrack_status, <linux/netfilter/nf_conntrack_common.h>. */
export const IPS = {
  seenReply: 1 << 1,
  assured: 1 << 2,
  confirmed: 1 << 3,
  srcNat: 1 << 4,
  dstNat: 1 << 5,
  srcNatDone: 1 << 7,
  dstNatDone: 1 << 8,
} as const;

/** Status of a flow of which both are decided. */
export const TRANSLATIONS_DONE = IPS.srcNatDone | IPS.dstNatDone;

/** Whether the flow's source or destination has been decided on (IPS_SRC_NAT_DONE, IPS_DST_NAT_DONE). */
export function isDecided({ status }: Connection, manipulation: Manipulation): boolean {
  return (status & (manipulation === 'source' ? IPS.srcNatDone : IPS.dstNatDone)) !== 0;
}

/** Decides on it without a change, as the kernel does when no rule wanted one (nf_nat_alloc_null_binding). */
export function decide(connection: Connection, manipulation: Manipulation): void {
  connection.status |= manipulation === 'source' ? IPS.srcNatDone : IPS.dstNatDone;
}

/**
 * Translates a packet as nf_nat_setup_info (net/netfilter/nf_nat_core.c) does, and ends the chain: `accept`.
 *
 * @param ends a source port that the kernel may have to change, because another flow has it, counts as not known
 */
export function translate(packet: Packet, manipulation: Manipulation, ends: NewEnds): Outcome {
  const { connection } = packet;
  if (connection === undefined || connection === 'untracked') return { kind: 'no match' };
  if (isDecided(connection, manipulation)) return { kind: 'drop' };
  const before = packet.ends;
  packet.translate(ends);
  decide(connection, manipulation);
  const same = (Object.keys(ends) as (keyof Ends)[]).every((end) => ends[end]?.equals(before[end].bytes));
  if (!same) connection.status |= manipulation === 'source' ? IPS.srcNat : IPS.dstNat;
  return { kind: 'accept' };
}

/** What masquerading changes: nf_nat_masquerade_ipv4, net/netfilter/nf_nat_masquerade.c. */
export function masquerade(packet: Packet, host: Host): NewEnds {
  const address = packet.oif && host.addressOn(packet.oif, packet);
  const { length } = packet.ends.source;
  return { source: address ? KnownBytes.of(address) : KnownBytes.unknown(length), sourcePort: KnownBytes.unknown(2) };
}

/** What redirecting to this host changes: nf_nat_redirect_ipv4, net/netfilter/nf_nat_redirect.c. */
export function redirect(packet: Packet, host: Host, port: KnownBytes | undefined): NewEnds {
  const { length } = packet.ends.destination;
  const address = packet.iif ? host.redirectedTo(packet.iif, packet.family) : loopbackOf(length);
  const destination = address ? KnownBytes.of(address) : KnownBytes.unknown(length);
  return port ? { destination, destinationPort: port } : { destination };
}

function loopbackOf(length: number): Uint8Array {
  if (length === 4) return Uint8Array.of(127, 0, 0, 1);
  const bytes = new Uint8Array(length);
  bytes[length - 1] = 1;
  return bytes;
}

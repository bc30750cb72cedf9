import type { Expression } from '../../netlink/nftables/index.ts';
import { type Connection, type Ends, KnownBytes, type Packet } from '../packet/index.ts';
import type { Outcome } from './outcome.ts';
import type { Registers } from './registers.ts';
import type { Host } from './surroundings.ts';

type NatExpression = Extract<Expression, { kind: 'nat' | 'masquerade' | 'redirect' }>;
type Change = { -readonly [End in keyof Ends]?: Ends[End] };

/** enum ip_conntrack_status, <linux/netfilter/nf_conntrack_common.h>. */
const IPS = { srcNat: 1 << 4, dstNat: 1 << 5, srcNatDone: 1 << 7, dstNatDone: 1 << 8 } as const;

/** Status of a flow of which both are decided. */
export const TRANSLATIONS_DONE = IPS.srcNatDone | IPS.dstNatDone;

/** The two translations of a flow. Each is decided once, by its first packet. */
export type Manipulation = 'source' | 'destination';

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
 * A source port that the kernel may have to change, because another flow has it, counts as not known.
 */
export function translate(expression: NatExpression, registers: Registers, packet: Packet, host: Host): Outcome {
  const { connection, family } = packet;
  if (connection === undefined || connection === 'untracked') return { kind: 'no match' };
  const wanted = change(expression, registers, packet, host);
  if (wanted === undefined) return { kind: 'cannot tell', about: `${expression.kind} to a range` };
  const [manipulation, ends] = wanted;
  // nft_nat_eval of a table inet translates its own family alone (net/netfilter/nft_nat.c).
  if (expression.kind === 'nat' && (expression.family === 'ip') !== (family === 'IPv4')) return { kind: 'no match' };
  if (isDecided(connection, manipulation)) return { kind: 'drop' };
  const before = packet.ends;
  packet.translate(ends);
  decide(connection, manipulation);
  const same = (Object.keys(ends) as (keyof Ends)[]).every((end) => ends[end]?.equals(before[end].bytes));
  if (!same) connection.status |= manipulation === 'source' ? IPS.srcNat : IPS.dstNat;
  return { kind: 'accept' };
}

/** Undefined where the kernel takes one of a range. */
function change(
  expression: NatExpression,
  registers: Registers,
  packet: Packet,
  host: Host,
): [Manipulation, Change] | undefined {
  const { port, portMax, flags = [] } = expression;
  const length = packet.ends.source.length;
  const read = (from: number | undefined, bytes: number) =>
    from === undefined ? undefined : registers.read(from, bytes);
  const isRange = (first: KnownBytes | undefined, last: KnownBytes | undefined) =>
    last !== undefined && first?.equals(last.bytes) !== true;
  const [first, last] = [read(port, 2), read(portMax, 2)];
  if (isRange(first, last) || flags.includes('netmap')) return undefined;
  if (expression.kind === 'redirect') {
    const address = packet.iif && host.addressOn(packet.iif, packet);
    const loopback = packet.iif === undefined ? loopbackOf(length) : undefined;
    const to = address ?? loopback;
    return [
      'destination',
      withPort({ destination: to ? KnownBytes.of(to) : KnownBytes.unknown(length) }, 'destinationPort', first),
    ];
  }
  if (expression.kind === 'masquerade') {
    const address = packet.oif && host.addressOn(packet.oif, packet);
    return [
      'source',
      { source: address ? KnownBytes.of(address) : KnownBytes.unknown(length), sourcePort: KnownBytes.unknown(2) },
    ];
  }
  const [address, addressMax] = [read(expression.address, length), read(expression.addressMax, length)];
  if (isRange(address, addressMax)) return undefined;
  if (expression.type === 'dnat')
    return ['destination', withPort(address ? { destination: address } : {}, 'destinationPort', first)];
  return ['source', { ...(address && { source: address }), sourcePort: first ?? KnownBytes.unknown(2) }];
}

function withPort(ends: Change, end: 'destinationPort', port: KnownBytes | undefined): Change {
  return port ? { ...ends, [end]: port } : ends;
}

function loopbackOf(length: number): Uint8Array {
  if (length === 4) return Uint8Array.of(127, 0, 0, 1);
  const bytes = new Uint8Array(length);
  bytes[length - 1] = 1;
  return bytes;
}

import type { Expression } from '../../netlink/nftables/index.ts';
import { KnownBytes, type Packet } from '../packet/index.ts';
import {
  type Host,
  type Manipulation,
  masquerade,
  type NewEnds,
  type Outcome,
  redirect,
  translate,
} from '../walk/index.ts';
import type { Registers } from './registers.ts';

type NatExpression = Extract<Expression, { kind: 'nat' | 'masquerade' | 'redirect' }>;

/** Translates as an expression says, and ends the chain: nft_nat_eval, net/netfilter/nft_nat.c. */
export function translateBy(expression: NatExpression, registers: Registers, packet: Packet, host: Host): Outcome {
  const { connection, family } = packet;
  if (connection === undefined || connection === 'untracked') return { kind: 'no match' };
  const wanted = change(expression, registers, packet, host);
  if (wanted === undefined) return { kind: 'cannot tell', about: `${expression.kind} to a range` };
  // A table inet may hold rules for the other family.
  if (expression.kind === 'nat' && (expression.family === 'ip') !== (family === 'IPv4')) return { kind: 'no match' };
  return translate(packet, ...wanted);
}

/** Undefined where the kernel takes one of a range. */
function change(
  expression: NatExpression,
  registers: Registers,
  packet: Packet,
  host: Host,
): [Manipulation, NewEnds] | undefined {
  const { port, portMax, flags = [] } = expression;
  const length = packet.ends.source.length;
  const read = (from: number | undefined, bytes: number) =>
    from === undefined ? undefined : registers.read(from, bytes);
  const isRange = (first: KnownBytes | undefined, last: KnownBytes | undefined) =>
    last !== undefined && first?.equals(last.bytes) !== true;
  const [first, last] = [read(port, 2), read(portMax, 2)];
  if (isRange(first, last) || flags.includes('netmap')) return undefined;
  if (expression.kind === 'redirect') return ['destination', redirect(packet, host, first)];
  if (expression.kind === 'masquerade') return ['source', masquerade(packet, host)];
  const [address, addressMax] = [read(expression.address, length), read(expression.addressMax, length)];
  if (isRange(address, addressMax)) return undefined;
  if (expression.type === 'dnat')
    return ['destination', { ...(address && { destination: address }), ...(first && { destinationPort: first }) }];
  return ['source', { ...(address && { source: address }), sourcePort: first ?? KnownBytes.unknown(2) }];
}

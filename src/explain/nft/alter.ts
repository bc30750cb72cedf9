import type { Expression } from '../../netlink/nftables/index.ts';
import { ENOUGH_HOPS, HEADER_FIELDS, type KnownBytes, type Packet } from '../packet/index.ts';
import type { Outcome, Situation } from '../walk/index.ts';
import type { Registers } from './registers.ts';
import { isOwnTable } from './tables.ts';

type PayloadSet = Extract<Expression, { kind: 'payload-set' }>;

/** The IP version shares a byte with the class of IPv6. */
const VERSION = 0xf0;

/**
 * Writes to a header (nft_payload_set_eval, net/netfilter/nft_payload.c). Nobody translates that back, and sockets,
 * neighbours and connection tracking find other flows, numbers and lengths in the packet than its sender meant. What
 * becomes of it then is not known here, but of the class of traffic where no policy rule asks for it, of hops enough,
 * and of our own tables, which put back what they replace.
 */
export function alterHeader(
  { base, offset, length, from }: PayloadSet,
  table: string,
  registers: Registers,
  { packet, host }: Pick<Situation, 'packet' | 'host'>,
): Outcome | undefined {
  const value = registers.read(from, length);
  if (
    base === 'link' ||
    !(
      isOwnTable(table) ||
      (base === 'network' && isHarmless(packet, offset, value, host.routesByClass?.(packet.family) ?? false))
    )
  )
    return { kind: 'cannot tell', about: `a write to the ${base} header, byte ${offset},` };
  packet[base] = packet[base].with(offset, value);
  return undefined;
}

/** `nft` writes whole words of 16 bits, with what was there around the field. */
function isHarmless(
  { family, network }: Packet,
  offset: number,
  { bytes, known }: KnownBytes,
  routesByClass: boolean,
): boolean {
  const { trafficClass, hops } = HEADER_FIELDS[family];
  return bytes.every((byte, index) => {
    const at = offset + index;
    const isKept = (mask: number) =>
      (known[index]! & network.known[at]! & mask) === mask && ((byte ^ network.bytes[at]!) & mask) === 0;
    if (at === hops) return known[index] === 0xff && byte >= ENOUGH_HOPS;
    return !routesByClass && trafficClass.some((one) => one === at) ? at > 0 || isKept(VERSION) : isKept(0xff);
  });
}

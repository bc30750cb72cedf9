import { interfaceName } from '../../../netlink/nftables/index.ts';
import { type ForAll, refusingChain } from '../../../nft/index.ts';
import { isChainHead, type LegacyEntry, type LegacyTable } from '../../../sys/index.ts';
import type { PodPackets } from './packets.ts';

/*
 * struct ipt_ip { in_addr src, dst, smsk, dmsk; char iniface[16], outiface[16]; u8 iniface_mask[16], outiface_mask[16];
 *   u16 proto; u8 flags, invflags; }, <linux/netfilter_ipv4/ip_tables.h>
 * struct ip6t_ip6 has the same with addresses of 16 bytes, and `u8 tos` before the flags, <linux/netfilter_ipv6/ip6_tables.h>
 */
const LAYOUTS = {
  IPv4: { address: 4, flags: 82, goto: 2, selecting: 1 },
  // IP6T_F_PROTO says that the protocol is given, which is looked at by itself.
  IPv6: { address: 16, flags: 131, goto: 4, selecting: 0 },
} as const;
const NAME = 16;
const IPT_INV_VIA_IN = 1;
const IPT_INV_VIA_OUT = 2;
const IPT_INV_SRCIP = 8;
const IPT_INV_DSTIP = 0x10;

const NF_INET_FORWARD = 2;
/** Verdicts of the standard target: -NF_DROP - 1, -NF_ACCEPT - 1, XT_RETURN. */
const VERDICTS: ReadonlyMap<number, 'refuse' | 'accept' | 'return'> = new Map([
  [-1, 'refuse'],
  [-2, 'accept'],
  [-5, 'return'],
]);

/** Whether chain FORWARD of legacy iptables drops or rejects these packets: by a rule that is for all of them, or by its policy. */
export function legacyRefuses(filter: LegacyTable, packets: PodPackets): boolean {
  const forward = filter.builtIn[NF_INET_FORWARD];
  if (!forward) return false;
  return refusingChain(String(forward.first), (first) => rulesFrom(filter, Number(first), packets)) !== undefined;
}

/** Those of a chain, by the offset of its first; of a built-in one with the policy. */
function* rulesFrom(table: LegacyTable, first: number, packets: PodPackets): Generator<ForAll | undefined> {
  const ends = new Set(table.builtIn.map((chain) => chain?.policy));
  for (let at = first; ; ) {
    const entry = table.entry(at);
    if (!entry || isChainHead(entry)) return;
    yield ruleForPackets(entry, packets);
    if (ends.has(at)) return;
    at = entry.next;
  }
}

function ruleForPackets(entry: LegacyEntry, packets: PodPackets): ForAll | undefined {
  const { matches, target, next } = entry;
  if (matches.some(({ name }) => name !== 'comment') || !isForAll(entry, packets)) return undefined;
  if (target.name === 'REJECT') return { kind: 'refuse' };
  if (target.name !== '') return undefined;
  const verdict = target.info.readInt32LE(0);
  const kind = VERDICTS.get(verdict);
  if (kind) return { kind };
  // A rule without a target leads to the next one.
  if (verdict < 0 || verdict === next) return undefined;
  const layout = LAYOUTS[packets.subnet.address.family];
  const isGoto = (entry.comparisons[layout.flags]! & layout.goto) !== 0;
  return { kind: isGoto ? 'goto' : 'jump', chain: String(verdict) };
}

/** Whether all of these packets meet what every rule can ask for. */
function isForAll({ comparisons: bytes }: LegacyEntry, { direction, subnet: { address }, link }: PodPackets): boolean {
  const { address: size, flags, selecting } = LAYOUTS[address.family];
  const inverted = bytes[flags + 1]!;
  const names = 4 * size;
  const isFrom = direction === 'from';
  const field = (at: number, length: number) => bytes.subarray(at, at + length);
  const asks = (value: Uint8Array | undefined, at: number, maskAt: number, length: number, bit: number) => {
    const [wanted, mask] = [field(at, length), field(maskAt, length)];
    const isInverted = (inverted & bit) !== 0;
    if (!isInverted && mask.every((byte) => byte === 0)) return true;
    return value?.every((byte, i) => ((byte ^ wanted[i]!) & mask[i]!) === 0) === !isInverted;
  };
  const own = address.bytes;
  const name = link === undefined ? undefined : interfaceName(link);
  return (
    asks(isFrom ? own : undefined, 0, 2 * size, size, IPT_INV_SRCIP) &&
    asks(isFrom ? undefined : own, size, 3 * size, size, IPT_INV_DSTIP) &&
    asks(isFrom ? name : undefined, names, names + 2 * NAME, NAME, IPT_INV_VIA_IN) &&
    asks(isFrom ? undefined : name, names + NAME, names + 3 * NAME, NAME, IPT_INV_VIA_OUT) &&
    // The protocol.
    field(names + 4 * NAME, 2).every((byte) => byte === 0) &&
    (bytes[flags]! & selecting) === 0
  );
}

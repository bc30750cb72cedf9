// What rules of ours compare, as expressions: each goes on with the rule only if it holds.

import { addressBits, type Cidr, type IpFamily, networkOf, parseCidr, prefixMask } from '../core/index.ts';
import { cmp, ct, type Expression, fib, hostOrder32, lookup, meta, payload } from '../netlink/nftables/index.ts';
import { RTN_LOCAL } from '../netlink/uapi/index.ts';

/** <linux/netfilter/nf_conntrack_common.h>: the destination was translated. */
const IPS_DST_NAT = 1 << 5;
/** The source was. */
const IPS_SRC_NAT = 1 << 4;
/** The flow's first packet has got through. */
const IPS_CONFIRMED = 1 << 3;
/** NF_CT_STATE_BIT(IP_CT_NEW) of <net/netfilter/nf_conntrack.h>. */
const CT_STATE_NEW = 1 << 3;

/** <linux/netfilter.h>. */
const NFPROTO: Record<IpFamily, number> = { IPv4: 2, IPv6: 10 };

/** `meta nfproto FAMILY`, in tables of both families. */
export function isFamily(family: IpFamily): Expression[] {
  return [meta('nfproto'), cmp.equal(Uint8Array.of(NFPROTO[family]))];
}

/** How many 4-byte registers an address takes. */
export function addressRegisters(family: IpFamily): number {
  return addressBits(family) / 32;
}

/** `ct state new` */
export function isNew(): Expression[] {
  return hasBits(ct('state'), CT_STATE_NEW);
}

/** `ct status dnat` */
export function isDestinationTranslated(): Expression[] {
  return hasBits(ct('status'), IPS_DST_NAT);
}

/** `ct status snat` */
export function isSourceTranslated(): Expression[] {
  return hasBits(ct('status'), IPS_SRC_NAT);
}

/** `ct status confirmed`: an earlier packet of the flow got through, as none does of one whose first packet is refused. */
export function isConfirmed(): Expression[] {
  return hasBits(ct('status'), IPS_CONFIRMED);
}

/** `meta mark & BITS != 0` */
export function isMarked(bits: number): Expression[] {
  return hasBits(meta('mark'), bits);
}

/** `meta mark set meta mark & ~BITS` */
export function clearMarkBits(bits: number): Expression[] {
  return [
    meta('mark'),
    { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(~bits), xor: hostOrder32(0) },
    { kind: 'meta-set', key: 'mark', from: 0 },
  ];
}

function hasBits(load: Expression, bits: number): Expression[] {
  const none = hostOrder32(0);
  return [load, { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(bits), xor: none }, cmp.notEqual(none)];
}

/** `fib saddr type local`, `fib daddr type local` */
export function isLocalAddress(which: 'saddr' | 'daddr'): Expression[] {
  return [fib('type', [which]), cmp.equal(hostOrder32(RTN_LOCAL))];
}

/** `ip saddr CIDR` and the like; with `!=` the opposite. Host bits of the block do not matter. */
export function addressIn(which: 'saddr' | 'daddr', block: Cidr, op: '==' | '!='): Expression[] {
  const { address, prefixLength } = block;
  if (prefixLength !== addressBits(address.family)) return inBlock(which, block, op);
  return [payload[which](address.family), { kind: 'cmp', from: 0, op, data: networkOf(address, prefixLength).bytes }];
}

/** The addresses by which a node speaks to itself: the kernel routes no packet with them to another. */
export const LOOPBACK: Readonly<Record<IpFamily, Cidr>> = {
  IPv4: parseCidr('127.0.0.0/8'),
  IPv6: parseCidr('::1/128'),
};

/** `ip saddr 127.0.0.0/8`, `ip6 saddr ::1` and the like; with `!=` the opposite. */
export function inLoopback(which: 'saddr' | 'daddr', family: IpFamily, op: '==' | '!=' = '=='): Expression[] {
  return addressIn(which, LOOPBACK[family], op);
}

/** As `addressIn`, with a mask also where the block is one address: in this form rules are on nodes already. */
export function inBlock(
  which: 'saddr' | 'daddr',
  { address, prefixLength }: Cidr,
  op: '==' | '!=' = '==',
): Expression[] {
  return [
    ...loadNetwork(which, address.family, prefixLength),
    { kind: 'cmp', from: 0, op, data: networkOf(address, prefixLength).bytes },
  ];
}

/** `ip saddr & MASK @SET`: whether the address is in one of the blocks of this length whose first addresses are in the set. */
export function inBlockOf(
  which: 'saddr' | 'daddr',
  family: IpFamily,
  { prefixLength, set }: { readonly prefixLength: number; readonly set: string },
): Expression[] {
  return [...loadNetwork(which, family, prefixLength), lookup(set)];
}

/** `ip saddr & MASK`: the first address of the block of this length that the address is in. */
function loadNetwork(which: 'saddr' | 'daddr', family: IpFamily, prefixLength: number): Expression[] {
  const mask = prefixMask(family, prefixLength);
  return [payload[which](family), { kind: 'bitwise', from: 0, to: 0, mask, xor: new Uint8Array(mask.length) }];
}

import { addressBits, type Cidr, type IpAddress, type IpFamily, networkOf } from '../../../core/index.ts';
import {
  cmp,
  ct,
  type Expression,
  fib,
  hostOrder32,
  interfaceName,
  lookup,
  meta,
  nftFamily,
  payload,
  type Register,
  random,
} from '../../../netlink/nftables/index.ts';
import type { LocalDetector } from '../../index.ts';

/** A rule without its place. */
export interface RuleBody {
  readonly expressions: readonly Expression[];
  readonly comment?: string;
}

export function rule(...parts: readonly (Expression | readonly Expression[])[]): RuleBody {
  return { expressions: parts.flat() };
}

export function commented(comment: string, body: RuleBody): RuleBody {
  return { ...body, comment };
}

/** How many 4-byte registers an address takes. */
export function addressRegisters(family: IpFamily): number {
  return addressBits(family) / 32;
}

/** `meta l4proto . th dport` from register `to` on. */
export function loadPort(to: Register = 0): Expression[] {
  return [meta('l4proto', to), payload.dport(to + 1)];
}

/** `ip daddr . meta l4proto . th dport` from register 0 on. */
export function loadVip(family: IpFamily): Expression[] {
  return [payload.daddr(family), ...loadPort(addressRegisters(family))];
}

/** `KEY map @SET` gives an endpoint: `dnat to` it. */
export function dnatByMap(family: IpFamily, map: string): Expression[] {
  const port = addressRegisters(family);
  return [lookup(map, { to: 0 }), { kind: 'nat', type: 'dnat', family: nftFamily(family), address: 0, port }];
}

/** `ct state new` */
export function isNew(): Expression[] {
  return hasBits([ct('state')], 1 << 3);
}

/** `ct status dnat` (IPS_DST_NAT) */
export function isDestinationTranslated(): Expression[] {
  return hasBits([ct('status')], 1 << 5);
}

/** `meta mark & BITS != 0` */
export function isMarked(bits: number): Expression[] {
  return hasBits([meta('mark')], bits);
}

/** `meta mark set meta mark & ~BITS` */
export function clearMarkBits(bits: number): Expression[] {
  return [
    meta('mark'),
    { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(~bits), xor: hostOrder32(0) },
    { kind: 'meta-set', key: 'mark', from: 0 },
  ];
}

function hasBits(load: readonly Expression[], bits: number): Expression[] {
  const none = hostOrder32(0);
  return [...load, { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(bits), xor: none }, cmp.notEqual(none)];
}

/** `fib saddr type local`, `fib daddr type local` */
export function isLocalAddress(which: 'saddr' | 'daddr'): Expression[] {
  // RTN_LOCAL
  return [fib('type', [which]), cmp.equal(hostOrder32(2))];
}

/** `ip saddr CIDR` and the like; with `!=` the opposite. */
export function addressIn(which: 'saddr' | 'daddr', { address, prefixLength }: Cidr, op: '==' | '!='): Expression[] {
  const { bytes } = networkOf(address, prefixLength);
  const load = payload[which](address.family);
  const compare: Expression = { kind: 'cmp', from: 0, op, data: bytes };
  if (prefixLength === addressBits(address.family)) return [load, compare];
  const xor = new Uint8Array(bytes.length);
  return [load, { kind: 'bitwise', from: 0, to: 0, mask: maskOf(address, prefixLength), xor }, compare];
}

function maskOf({ bytes }: IpAddress, prefixLength: number): Uint8Array {
  return bytes.map((_, index) => 0xff << Math.min(8, Math.max(0, 8 * (index + 1) - prefixLength)));
}

/** `numgen random mod N` in a register. */
export function anyOf(count: number, to: Register): Expression {
  return random(count, to);
}

/** Matches packets from pods, or with `!=` all others; undefined when pods cannot be told, as for kube-proxy. */
export function fromPods(detector: LocalDetector, op: '==' | '!='): Expression[] | undefined {
  switch (detector.kind) {
    case 'none':
      return undefined;
    case 'cidr':
      // Everything would be a pod.
      return detector.cidr.prefixLength === 0 ? undefined : addressIn('saddr', detector.cidr, op);
    case 'bridge':
      return [meta('iifname'), { kind: 'cmp', from: 0, op, data: interfaceName(detector.interfaceName) }];
    case 'prefix':
      // Compared as far as the prefix goes: `iifname "veth*"`.
      return [meta('iifname'), { kind: 'cmp', from: 0, op, data: Buffer.from(detector.interfacePrefix) }];
    default:
      return detector satisfies never;
  }
}

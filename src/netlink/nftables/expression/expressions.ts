// Short ways to write expressions, so that rules read like the `nft` text they stand for.

import type {
  CmpExpression,
  CounterExpression,
  CtExpression,
  CtKey,
  Expression,
  ImmediateExpression,
  LookupExpression,
  MetaExpression,
  MetaKey,
  NumgenExpression,
  PayloadExpression,
  PayloadSetExpression,
  Verdict,
  VerdictExpression,
} from './expression.ts';
import type { Register } from './register.ts';
import type { FibExpression, FibFlag } from './routing-expression.ts';

type Family = 'IPv4' | 'IPv6';

const load = (base: PayloadExpression['base'], offset: number, length: number, to: Register): PayloadExpression => ({
  kind: 'payload',
  base,
  offset,
  length,
  to,
});

/** Loads of header fields. */
export const payload = {
  /** `ether saddr` */
  etherSaddr: (to: Register = 0) => load('link', 6, 6, to),
  /** `ip saddr`, `ip6 saddr` */
  saddr: (family: Family, to: Register = 0) =>
    family === 'IPv4' ? load('network', 12, 4, to) : load('network', 8, 16, to),
  /** `ip daddr`, `ip6 daddr` */
  daddr: (family: Family, to: Register = 0) =>
    family === 'IPv4' ? load('network', 16, 4, to) : load('network', 24, 16, to),
  /** `th sport` */
  sport: (to: Register = 0) => load('transport', 0, 2, to),
  /** `th dport` */
  dport: (to: Register = 0) => load('transport', 2, 2, to),
};

/** Where the checksum of an IPv4 header is in it. IPv6 headers have none. */
const IPV4_CHECKSUM = 10;

const store = (family: Family, ipv4Offset: number, ipv6Offset: number): PayloadSetExpression => {
  const isIpv4 = family === 'IPv4';
  return {
    kind: 'payload-set',
    base: 'network',
    offset: isIpv4 ? ipv4Offset : ipv6Offset,
    length: isIpv4 ? 4 : 16,
    from: 0,
    checksumOffset: isIpv4 ? IPV4_CHECKSUM : undefined,
    pseudoHeader: true,
  };
};

/** Stores to header fields; checksums follow. */
export const setPayload = {
  /** `ip saddr set`, `ip6 saddr set` */
  saddr: (family: Family) => store(family, 12, 8),
  /** `ip daddr set`, `ip6 daddr set` */
  daddr: (family: Family) => store(family, 16, 24),
};

/** `meta KEY` */
export function meta(key: MetaKey, to: Register = 0): MetaExpression {
  return { kind: 'meta', key, to };
}

/** `ct KEY`, `ct original KEY` */
export function ct(key: CtKey, to: Register = 0, direction?: 'original' | 'reply'): CtExpression {
  return { kind: 'ct', key, to, ...(direction && { direction }) };
}

/** `fib FLAG . FLAG RESULT` */
export function fib(result: FibExpression['result'], flags: readonly FibFlag[], to: Register = 0): FibExpression {
  return { kind: 'fib', result, flags, to };
}

/** `numgen random mod MODULUS` */
export function random(modulus: number, to: Register = 0): NumgenExpression {
  return { kind: 'numgen', mode: 'random', modulus, to };
}

/** Comparisons with a constant. */
export const cmp = {
  equal: (data: Uint8Array, from: Register = 0): CmpExpression => ({ kind: 'cmp', from, op: '==', data }),
  notEqual: (data: Uint8Array, from: Register = 0): CmpExpression => ({ kind: 'cmp', from, op: '!=', data }),
};

/** `@SET`, `!= @SET`, and with `to` a map: `map @SET`, `vmap @SET`. */
export function lookup(
  set: string,
  options: { readonly from?: Register; readonly to?: Register | 'verdict'; readonly invert?: boolean } = {},
): LookupExpression {
  return { kind: 'lookup', set, from: 0, ...options };
}

/** A constant in a register. */
export function immediate(data: Uint8Array, to: Register = 0): ImmediateExpression {
  return { kind: 'immediate', to, data };
}

const verdict = (value: Verdict): VerdictExpression => ({ kind: 'verdict', verdict: value });

export const accept = verdict({ kind: 'accept' });
export const drop = verdict({ kind: 'drop' });
export const returnToCaller = verdict({ kind: 'return' });
export const jump = (chain: string): VerdictExpression => verdict({ kind: 'jump', chain });
export const goto = (chain: string): VerdictExpression => verdict({ kind: 'goto', chain });

export const counter: CounterExpression = { kind: 'counter' };

/** `meta mark set mark or BITS`, as `nft` writes it. */
export function setMarkBits(bits: number): readonly Expression[] {
  return [
    meta('mark'),
    { kind: 'bitwise', from: 0, to: 0, mask: hostOrder32(~bits), xor: hostOrder32(bits) },
    { kind: 'meta-set', key: 'mark', from: 0 },
  ];
}

/** A 32-bit number as registers hold those that are no packet fields: marks, states, types. */
export function hostOrder32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

/** A 16-bit number in network byte order: ports. */
export function networkOrder16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value);
}

/** An interface name as `iifname` loads it: 16 bytes, filled up with zeros. */
export function interfaceName(name: string): Uint8Array {
  const bytes = new Uint8Array(16);
  Buffer.from(bytes.buffer).write(name, 0, 15, 'utf8');
  return bytes;
}

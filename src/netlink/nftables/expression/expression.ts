// What rules are made of. Each expression reads or writes registers, and may end the rule.

import type { ExtensionExpression } from './extension-expression.ts';
import type { MasqueradeExpression, NatExpression, RedirectExpression } from './nat-expression.ts';
import type { Register } from './register.ts';
import type { FibExpression, RtExpression } from './routing-expression.ts';

/** What happens to the packet. `continue` goes on with the next rule, `break` ends the evaluation of this one. */
export type Verdict =
  | { readonly kind: 'accept' | 'drop' | 'continue' | 'break' | 'return' }
  | { readonly kind: 'jump' | 'goto'; readonly chain: string };

/** The header that bytes of the packet are counted from. */
export type PayloadBase = 'link' | 'network' | 'transport';

/** Loads bytes of the packet. */
export interface PayloadExpression {
  readonly kind: 'payload';
  readonly base: PayloadBase;
  readonly offset: number;
  readonly length: number;
  readonly to: Register;
}

/** Overwrites bytes of the packet. */
export interface PayloadSetExpression {
  readonly kind: 'payload-set';
  readonly base: PayloadBase;
  readonly offset: number;
  readonly length: number;
  readonly from: Register;
  /** Where the Internet checksum that has to follow the change is, counted from `base`. */
  readonly checksumOffset?: number | undefined;
  /** The field is part of the pseudo header, so that the checksum of the transport header changes too. */
  readonly pseudoHeader?: boolean | undefined;
}

/** NFT_META_*, without those that nobody here meets. */
export type MetaKey =
  | 'length'
  | 'protocol'
  | 'priority'
  | 'mark'
  | 'iif'
  | 'oif'
  | 'iifname'
  | 'oifname'
  | 'iiftype'
  | 'oiftype'
  | 'skuid'
  | 'skgid'
  | 'nftrace'
  | 'rtclassid'
  | 'nfproto'
  | 'l4proto'
  | 'iifgroup'
  | 'oifgroup'
  | 'pkttype'
  | 'cgroup'
  | 'ipsec';

/** Loads what the kernel knows about the packet. Host byte order, but `protocol` (an EtherType) in network order. */
export interface MetaExpression {
  readonly kind: 'meta';
  readonly key: MetaKey;
  readonly to: Register;
}

/** Changes what the kernel knows about the packet, from a register in host byte order. */
export interface MetaSetExpression {
  readonly kind: 'meta-set';
  readonly key: 'mark' | 'priority' | 'nftrace' | 'pkttype';
  readonly from: Register;
}

/** Goes on only if the comparison holds. Bytes are compared as in memcmp. */
export interface CmpExpression {
  readonly kind: 'cmp';
  readonly from: Register;
  readonly op: '==' | '!=' | '<' | '<=' | '>' | '>=';
  readonly data: Uint8Array;
}

/** Goes on only if the value is (or with `!=` is not) between two others, both included. */
export interface RangeExpression {
  readonly kind: 'range';
  readonly from: Register;
  readonly op: '==' | '!=';
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

/** (value & mask) ^ xor. */
export interface BitwiseExpression {
  readonly kind: 'bitwise';
  readonly from: Register;
  readonly to: Register;
  /** As long as the value. */
  readonly mask: Uint8Array;
  readonly xor: Uint8Array;
}

/** Shifts a value of `length` bytes. */
export interface ShiftExpression {
  readonly kind: 'shift';
  readonly direction: 'left' | 'right';
  readonly from: Register;
  readonly to: Register;
  readonly length: number;
  readonly bits: number;
}

/** Turns the byte order of integers of `size` bytes; `length` is that of all of them. */
export interface ByteorderExpression {
  readonly kind: 'byteorder';
  readonly op: 'ntoh' | 'hton';
  readonly from: Register;
  readonly to: Register;
  readonly length: number;
  readonly size: 2 | 4 | 8;
}

/** Goes on only if the key is in the set; of a map, loads the value or takes the verdict. */
export interface LookupExpression {
  readonly kind: 'lookup';
  readonly set: string;
  /** The `id` of an anonymous set of the same transaction. */
  readonly setId?: number | undefined;
  readonly from: Register;
  /** Of a map: where the value goes. Missing for sets. */
  readonly to?: Register | 'verdict' | undefined;
  /** Goes on only if the key is *not* in the set. */
  readonly invert?: boolean | undefined;
}

/** Loads a constant. */
export interface ImmediateExpression {
  readonly kind: 'immediate';
  readonly to: Register;
  readonly data: Uint8Array;
}

/** Ends the rule with a verdict. */
export interface VerdictExpression {
  readonly kind: 'verdict';
  readonly verdict: Verdict;
}

/** NFT_CT_*; those with `ip` and `ip6` are addresses of one family. */
export type CtKey =
  | 'state'
  | 'direction'
  | 'status'
  | 'mark'
  | 'secmark'
  | 'expiration'
  | 'helper'
  | 'l3proto'
  | 'protocol'
  | 'proto-src'
  | 'proto-dst'
  | 'labels'
  | 'packets'
  | 'bytes'
  | 'avgpkt'
  | 'zone'
  | 'saddr-ip'
  | 'daddr-ip'
  | 'saddr-ip6'
  | 'daddr-ip6'
  | 'id';

/** Loads what connection tracking knows. Host byte order, but addresses and ports in network order. */
export interface CtExpression {
  readonly kind: 'ct';
  readonly key: CtKey;
  /** Needed for addresses, ports, and `protocol`. */
  readonly direction?: 'original' | 'reply' | undefined;
  readonly to: Register;
}

/** Changes what connection tracking remembers of the connection, from a register in host byte order. */
export interface CtSetExpression {
  readonly kind: 'ct-set';
  readonly key: 'mark' | 'zone';
  readonly direction?: 'original' | 'reply' | undefined;
  readonly from: Register;
}

/** Loads a number from `offset` to `offset + modulus - 1`, in host byte order. */
export interface NumgenExpression {
  readonly kind: 'numgen';
  readonly mode: 'random' | 'inc';
  readonly modulus: number;
  /** @default 0 */
  readonly offset?: number | undefined;
  readonly to: Register;
}

/** Loads a hash (jhash) of `length` bytes, modulo `modulus`, plus `offset`, in host byte order. */
export interface HashExpression {
  readonly kind: 'jhash';
  readonly from: Register;
  readonly length: number;
  readonly to: Register;
  readonly modulus: number;
  /** Missing: the kernel takes a random one, which is not read back. */
  readonly seed?: number | undefined;
  /** @default 0 */
  readonly offset?: number | undefined;
}

/** Changes a set from within the path of a packet. */
export interface DynsetExpression {
  readonly kind: 'dynset';
  /** `add` leaves an element alone that is there; `update` restarts its timeout. */
  readonly operation: 'add' | 'update' | 'delete';
  readonly set: string;
  readonly setId?: number | undefined;
  readonly key: Register;
  /** Of a map: the value. */
  readonly data?: Register | undefined;
  /** Missing: the set's own. */
  readonly timeoutMs?: number | undefined;
  /** Evaluated for each element: a counter or a limit. */
  readonly expressions?: readonly Expression[] | undefined;
}

/** Refuses the packet. `icmp` codes are those of the packet's family; `icmpx` codes are NFT_REJECT_ICMPX_*, for both. */
export type RejectExpression =
  | { readonly kind: 'reject'; readonly type: 'icmp' | 'icmpx'; readonly code: number }
  | { readonly kind: 'reject'; readonly type: 'tcp-reset' };

/** Counts. Read back with what it counted. */
export interface CounterExpression {
  readonly kind: 'counter';
  readonly packets?: bigint | undefined;
  readonly bytes?: bigint | undefined;
}

/** Goes on while no more than `rate` packets or bytes come in a `unit` (with `invert`: when more come). */
export interface LimitExpression {
  readonly kind: 'limit';
  readonly rate: number;
  readonly unit: 'second' | 'minute' | 'hour' | 'day' | 'week';
  readonly burst: number;
  readonly of: 'packets' | 'bytes';
  readonly invert?: boolean | undefined;
}

/** Keeps the packet out of connection tracking. */
export interface NotrackExpression {
  readonly kind: 'notrack';
}

/** Writes a line about the packet to the kernel's log, or with `group` hands it to a listener (nflog). */
export interface LogExpression {
  readonly kind: 'log';
  readonly prefix?: string | undefined;
  /** Syslog level, 0 to 7. @default 4 (warning) */
  readonly level?: number | undefined;
  readonly group?: number | undefined;
  readonly snapLength?: number | undefined;
}

/** Adds to a named counter. */
export interface ObjrefExpression {
  readonly kind: 'objref';
  readonly type: 'counter';
  readonly name: string;
}

/** Read back only: something this program does not write, in rules that are not ours. */
export interface UnknownExpression {
  readonly kind: 'unknown';
  readonly name: string;
  /** NFTA_EXPR_DATA as it came. */
  readonly data: Uint8Array;
}

/** Those that only load registers: the bytes they load follow from the packet, from constants, or from other registers. */
export type LoadExpression =
  | PayloadExpression
  | MetaExpression
  | CtExpression
  | FibExpression
  | RtExpression
  | NumgenExpression
  | HashExpression
  | ImmediateExpression
  | BitwiseExpression
  | ShiftExpression
  | ByteorderExpression;

/** One expression of a rule. */
export type Expression =
  | LoadExpression
  | PayloadSetExpression
  | MetaSetExpression
  | CtSetExpression
  | CmpExpression
  | RangeExpression
  | LookupExpression
  | DynsetExpression
  | VerdictExpression
  | NatExpression
  | MasqueradeExpression
  | RedirectExpression
  | RejectExpression
  | CounterExpression
  | LimitExpression
  | NotrackExpression
  | LogExpression
  | ObjrefExpression
  | ExtensionExpression
  | UnknownExpression;

// The objects of nf_tables as typed data: what is written to the kernel and what is read back from it.

import type { Expression, Verdict } from '../expression/expression.ts';
import type { DatatypeName } from './datatypes.ts';

/**
 * The families of tables: `inet` sees packets of IPv4 and IPv6, `bridge` the frames that pass through bridges, `netdev`
 * those of links, `arp` questions who has an address. Base chains of the last two are none of the model (`LinkChain`).
 */
export type NftFamily = 'ip' | 'ip6' | 'inet' | 'bridge' | 'netdev' | 'arp';

/** Names a table. */
export interface TableRef {
  readonly kind: 'table';
  readonly family: NftFamily;
  readonly name: string;
}

/** A table. */
export interface NftTable extends TableRef {
  /** Shown by `nft list`; here and in all other objects at most 253 bytes, of which `nft` itself accepts 128. */
  readonly comment?: string | undefined;
  /**
   * It belongs to the socket that makes it: nobody else may change it, a flush of the ruleset spares it, and it vanishes with the
   * socket, however its process ends. Linux 5.12; written only. @default false
   */
  readonly owned?: boolean | undefined;
  /** Read back only: its base chains are not hooked in, so that no packet meets its rules. @default false */
  readonly dormant?: boolean | undefined;
  /** Read back only: how many chains, sets and stateful objects are in it. */
  readonly use?: number | undefined;
  /** Read back only: the kernel's number of this object, unique in its table. */
  readonly handle?: number | undefined;
}

/** Names a chain. */
export interface ChainRef {
  readonly kind: 'chain';
  readonly family: NftFamily;
  readonly table: string;
  readonly name: string;
}

/** Where packets enter a base chain. */
export type NftHook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting';

/** What makes a chain a base chain: packets enter it from a hook instead of by a jump. */
export interface BaseChain {
  readonly type: 'filter' | 'nat' | 'route';
  readonly hook: NftHook;
  /** Lower ones run earlier: dstnat is -100, filter 0, srcnat 100. */
  readonly priority: number;
  /** @default 'accept' */
  readonly policy?: 'accept' | 'drop' | undefined;
}

/** A chain. */
export interface NftChain extends ChainRef {
  /** Missing: a regular chain, entered by jump or goto. */
  readonly base?: BaseChain | undefined;
  readonly comment?: string | undefined;
  /** Read back only: its rules, and the rules and elements that jump to it. */
  readonly use?: number | undefined;
  /** Read back only. */
  readonly handle?: number | undefined;
}

/** Names a rule: rules have no names, only the number the kernel gave them. */
export interface RuleRef {
  readonly kind: 'rule';
  readonly family: NftFamily;
  readonly table: string;
  readonly chain: string;
  /** The rule's number, as read back; to be given for replacing and deleting. */
  readonly handle?: number | undefined;
}

/** A rule: its expressions are evaluated in order, until one does not match or gives a verdict. */
export interface NftRule extends RuleRef {
  readonly expressions: readonly Expression[];
  readonly comment?: string | undefined;
  /**
   * The handle of the rule after which (`add`) or before which (`insert`) this one goes.
   * Missing: at the end (`add`) or the beginning (`insert`) of the chain.
   */
  readonly position?: number | undefined;
}

/** Names a set or map. */
export interface SetRef {
  readonly kind: 'set';
  readonly family: NftFamily;
  readonly table: string;
  readonly name: string;
}

/** What the kernel has to prepare a set for. */
export type SetFlag =
  /** Elements are ranges. Of one field: see `intervalRanges`; of several: `keyEnd` of the elements. */
  | 'interval'
  /** Elements may have a timeout. */
  | 'timeout'
  /** Rules may add elements (`dynset`). */
  | 'dynamic'
  /** Elements are never changed once the set is bound to a rule. */
  | 'constant'
  /** Belongs to one rule and goes with it; its name holds `%d`, for which the kernel puts a number. */
  | 'anonymous';

/** A set, or with `data` a map. */
export interface NftSet extends SetRef {
  /** The type of the keys: one datatype, or the fields of a concatenation, each padded to 4 bytes. */
  readonly key: readonly DatatypeName[];
  /** Of a map: the type of the values, a concatenation like the key; or verdicts. */
  readonly data?: readonly DatatypeName[] | 'verdict' | undefined;
  readonly flags?: readonly SetFlag[] | undefined;
  /** The most elements it may hold. Missing: no limit, except that the kernel puts 65535 for dynamic sets. */
  readonly size?: number | undefined;
  /** How long an element stays that has no timeout of its own; needs the flag `timeout`. */
  readonly timeoutMs?: number | undefined;
  /** How often elements past their time are removed. */
  readonly gcIntervalMs?: number | undefined;
  readonly comment?: string | undefined;
  /** Read back only, where the type is not known here: how long the keys are, fields padded. */
  readonly keyLength?: number | undefined;
  /** The same of the values of a map. */
  readonly dataLength?: number | undefined;
  /** Read back only: what each element has besides, such as a limit; it is evaluated when the element is added or found. */
  readonly expressions?: readonly Expression[] | undefined;
  /** A number of the caller's, by which rules of the same transaction name an anonymous set (`setId`). */
  readonly id?: number | undefined;
  /** Read back only. */
  readonly handle?: number | undefined;
}

/** One element of a set or map. */
export interface NftElement {
  /** As long as the key type, fields padded to 4 bytes; empty for a catch-all element. Network byte order of packet fields. */
  readonly key: Uint8Array;
  /** The last key of a range, field by field, in a concatenated set with the flag `interval`. */
  readonly keyEnd?: Uint8Array | undefined;
  /** In a set of one field with the flag `interval`: this key is the first one *behind* a range. See `intervalRanges`. */
  readonly intervalEnd?: boolean | undefined;
  /** Matches what no other element matches; Linux 5.13. */
  readonly catchAll?: boolean | undefined;
  /** The value in a data map. */
  readonly data?: Uint8Array | undefined;
  /** The value in a verdict map. */
  readonly verdict?: Verdict | undefined;
  /** How long it stays; missing: the set's own timeout, if it has one. */
  readonly timeoutMs?: number | undefined;
  /** How long it stays from now on. Read back; written when an element is to keep the age it had. */
  readonly expirationMs?: number | undefined;
  readonly comment?: string | undefined;
}

/** Elements of one set or map. */
export interface NftElements {
  readonly kind: 'elements';
  readonly family: NftFamily;
  readonly table: string;
  readonly set: string;
  /** The `id` of an anonymous set of the same transaction. */
  readonly setId?: number | undefined;
  /** For deleting, the keys (and flags) are enough: the kernel does not look at the value. */
  readonly elements: readonly NftElement[];
}

/** Names a counter. */
export interface CounterRef {
  readonly kind: 'counter';
  readonly family: NftFamily;
  readonly table: string;
  readonly name: string;
}

/** A named counter that rules add to (`objref`). */
export interface NftCounter extends CounterRef {
  readonly packets?: bigint | undefined;
  readonly bytes?: bigint | undefined;
  readonly comment?: string | undefined;
  /** Read back only. */
  readonly handle?: number | undefined;
}

/** Whatever a table holds, the table included. */
export type NftObject = NftTable | NftChain | NftRule | NftSet | NftElements | NftCounter;

/** Enough of an object to delete it. */
export type NftRef = TableRef | ChainRef | RuleRef | SetRef | NftElements | CounterRef;

/** One step of a transaction. */
export type NftChange =
  /** `add` leaves alone what exists already (elements: with the same value); `create` is refused then (EEXIST). */
  | { readonly operation: 'add' | 'create'; readonly object: NftObject }
  /** A rule at the beginning of its chain or before `position`; or in place of the rule that has `handle`. */
  | { readonly operation: 'insert' | 'replace'; readonly object: NftRule }
  /**
   * `delete` is refused when the object does not exist (ENOENT); `destroy` is not. Tables and chains can be destroyed on
   * every kernel, other objects since Linux 6.3. A table goes with all that is in it, a chain with its rules; a chain or
   * set something still refers to is refused (EBUSY).
   */
  | { readonly operation: 'delete' | 'destroy'; readonly object: NftRef }
  /** Removes all rules of a chain or of a table's chains, or all elements of a set. */
  | { readonly operation: 'flush'; readonly object: TableRef | ChainRef | SetRef };

/** What a commit did. */
export interface CommitReport {
  /** The ruleset's generation after it; undefined when there was nothing to do. */
  readonly generation: number | undefined;
  /** How many netlink messages it took, begin and end of the batch included. */
  readonly messages: number;
  readonly bytes: number;
  /** How long the kernel took (the time inside sendmsg). */
  readonly kernelSeconds: number;
}

/** Options of a commit. */
export interface CommitOptions {
  /** Refuse everything (`isStaleGeneration`) unless the ruleset is still of this generation. @default any */
  readonly expectGeneration?: number | undefined;
  /**
   * Only ask whether the kernel would make the changes, as `nft --check` does: it looks at all of them, and makes none,
   * because the batch lacks its end (`NFNL_ABORT_VALIDATE` in net/netfilter/nfnetlink.c). @default false
   */
  readonly checkOnly?: boolean | undefined;
}

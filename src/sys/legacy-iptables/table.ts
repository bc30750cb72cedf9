import { readFileSync } from 'node:fs';
import { type IpFamily, KernelError } from '../../core/index.ts';
import { allocateForKernel } from '../allocator.ts';
import { libc } from '../libc.ts';

/*
 * Legacy iptables has no netlink interface: a table is read whole, by socket options. So is arptables.
 *
 *   struct ipt_getinfo { char name[32]; u32 valid_hooks, hook_entry[5], underflow[5], num_entries, size; }
 *   struct ipt_get_entries { char name[32]; u32 size, unused; struct ipt_entry entrytable[]; }
 *   struct ipt_entry { struct ipt_ip ip; u32 nfcache; u16 target_offset, next_offset; u32 comefrom; u64 counters[2]; }, then matches
 *   struct xt_entry_match, xt_entry_target { u16 size; char name[29]; u8 revision; }, then what the extension has
 *   struct xt_standard_target { struct xt_entry_target target; s32 verdict; }, whose name is empty
 *   struct xt_error_target { struct xt_entry_target target; char errorname[30]; }
 *
 *   struct arpt_getinfo, arpt_get_entries: the same with 3 hooks
 *   struct arpt_entry { struct arpt_arp arp; u16 target_offset, next_offset; u32 comefrom; u64 counters[2]; }, without matches
 *
 * In front of the first rule of a chain that is not built in stands an entry with an error target, which holds its name; the last
 * rule is its policy, a plain return. What ends the table is an error target too.
 *
 * <linux/netfilter_ipv4/ip_tables.h>, <linux/netfilter_ipv6/ip6_tables.h>, <linux/netfilter_arp/arp_tables.h>,
 * <linux/netfilter/x_tables.h>. Numbers are in host byte order, offsets of entries are counted from the first one.
 */

const NAME_LENGTH = 32;
const VALID_HOOKS_AT = 32;
const HOOK_ENTRY_AT = 36;
const ENTRIES_AT = 40;
/** sizeof(xt_error_target). */
const ERROR_TARGET_SIZE = 64;
/** In matches and targets: the name, the revision, what is the extension's own. */
const EXTENSION_NAME_AT = 2;
const REVISION_AT = 31;
const INFO_AT = 32;

const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const IPPROTO_RAW = 255;

/** How often a table is asked for that changes meanwhile. */
const ATTEMPTS = 6;

/** Whose tables: of iptables those of a family, or those of arptables. */
export type LegacyFamily = IpFamily | 'ARP';

interface FamilyLayout {
  /** Names of the tables in use in the thread's namespace, one a line. */
  readonly tables: string;
  /** AF_* and SOL_*. */
  readonly domain: number;
  readonly level: number;
  /** *_SO_GET_INFO; that of the entries comes next. */
  readonly getInfo: number;
  /** How many a table may have. */
  readonly hooks: number;
  /** sizeof(ipt_ip), the comparisons every entry has; all zero when they are true of every packet. */
  readonly comparisons: number;
  /** Offset of target_offset, next_offset comes next. */
  readonly offsets: number;
  /** sizeof(ipt_entry); what comes behind, up to the target, are matches. */
  readonly entry: number;
}

const IPTABLES = { getInfo: 64, hooks: 5 } as const;
const [IPV4, IPV6] = [
  { domain: 2, level: 0 },
  { domain: 10, level: 41 },
] as const;
const LAYOUTS: Record<LegacyFamily, FamilyLayout> = {
  IPv4: { ...IPTABLES, ...IPV4, tables: namesOf('ip'), comparisons: 84, offsets: 88, entry: 112 },
  IPv6: { ...IPTABLES, ...IPV6, tables: namesOf('ip6'), comparisons: 136, offsets: 140, entry: 168 },
  ARP: { getInfo: 96, hooks: 3, ...IPV4, tables: namesOf('arp'), comparisons: 164, offsets: 164, entry: 192 },
};

function namesOf(program: string): string {
  return `/proc/thread-self/net/${program}_tables_names`;
}

/** A match or a target of an entry. */
export interface LegacyExtension {
  /** Empty for the standard target. */
  readonly name: string;
  readonly revision: number;
  /** What is the extension's own, with padding at its end. */
  readonly info: Buffer;
}

/** One rule of a table, or what stands for a chain's name or policy. */
export interface LegacyEntry {
  /** struct ipt_ip, ip6t_ip6, arpt_arp: the comparisons of addresses, interfaces and protocol. */
  readonly comparisons: Buffer;
  readonly matches: readonly LegacyExtension[];
  readonly target: LegacyExtension;
  /** Offset of the entry behind it. */
  readonly next: number;
}

/** A built-in chain: offset of its first entry, and of its last, which is the policy. */
export interface BuiltInChain {
  readonly first: number;
  readonly policy: number;
}

/** A table as the kernel gave it out. Entries are taken apart when they are asked for: there may be a hundred thousand. */
export class LegacyTable {
  /** By number of the hook, NF_INET_*, NF_ARP_*; undefined where the table has none. */
  readonly builtIn: readonly (BuiltInChain | undefined)[];
  readonly #entries: Buffer;
  readonly #layout: FamilyLayout;

  /**
   * @param info struct ipt_getinfo
   * @param entries its entries, one behind the other
   */
  constructor(family: LegacyFamily, info: Buffer, entries: Buffer) {
    this.#layout = LAYOUTS[family];
    this.#entries = entries;
    const { hooks } = this.#layout;
    const valid = info.readUInt32LE(VALID_HOOKS_AT);
    const numberAt = (at: number) => info.readUInt32LE(HOOK_ENTRY_AT + 4 * at);
    this.builtIn = Array.from({ length: hooks }, (_, hook) =>
      (valid & (1 << hook)) === 0 ? undefined : { first: numberAt(hook), policy: numberAt(hooks + hook) },
    );
  }

  /** The entry at an offset; undefined where there is none. */
  entry(at: number): LegacyEntry | undefined {
    const { comparisons, entry, offsets } = this.#layout;
    const bytes = this.#entries;
    if (at < 0 || at + entry > bytes.length) return undefined;
    const targetAt = bytes.readUInt16LE(at + offsets);
    const length = bytes.readUInt16LE(at + offsets + 2);
    if (targetAt < entry || length < targetAt + INFO_AT || at + length > bytes.length) return undefined;
    const rule = bytes.subarray(at, at + length);
    const matches: LegacyExtension[] = [];
    for (let matchAt = entry; matchAt + INFO_AT <= targetAt; ) {
      const size = rule.readUInt16LE(matchAt);
      if (size < INFO_AT) return undefined;
      matches.push(extension(rule.subarray(matchAt, matchAt + size)));
      matchAt += size;
    }
    return {
      comparisons: rule.subarray(0, comparisons),
      matches,
      target: extension(rule.subarray(targetAt)),
      next: at + length,
    };
  }

  /** The name of the chain, not a built-in one, whose first rule is at an offset: where a jump leads to. */
  chainAt(first: number): string | undefined {
    const head = this.entry(first - this.#layout.entry - ERROR_TARGET_SIZE);
    return head?.next === first && isChainHead(head) ? textOf(head.target.info) : undefined;
  }
}

/** Whether an entry is no rule, but stands in front of a chain or at the end of the table. */
export function isChainHead({ target }: LegacyEntry): boolean {
  return target.name === 'ERROR';
}

function textOf(bytes: Buffer): string {
  const end = bytes.indexOf(0);
  return bytes.toString('latin1', 0, end < 0 ? bytes.length : end);
}

function extension(bytes: Buffer): LegacyExtension {
  return {
    name: textOf(bytes.subarray(EXTENSION_NAME_AT, REVISION_AT)),
    revision: bytes.readUInt8(REVISION_AT),
    info: bytes.subarray(INFO_AT),
  };
}

/** The tables of legacy iptables or arptables in the network namespace of the calling thread. Undefined when nobody may read which. */
export function legacyTables(family: LegacyFamily): string[] | undefined {
  try {
    return readFileSync(LAYOUTS[family].tables, 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    // Neither is in this kernel, or not used yet.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : undefined;
  }
}

/**
 * Reads a table of legacy iptables or arptables in the network namespace of the calling thread. One that is not in use is made by this
 * question: ask `legacyTables` before. Needs CAP_NET_ADMIN and CAP_NET_RAW.
 *
 * @throws KernelError, EAGAIN when it keeps changing
 */
export function readLegacyTable(family: LegacyFamily, name: string): LegacyTable {
  return readTable(family, name, Number.POSITIVE_INFINITY)!;
}

/**
 * A table of legacy iptables in the network namespace of the calling thread. Undefined where it is not in use, which the question
 * does not change, is larger than `mostBytes`, keeps changing, or nobody may read it.
 */
export function legacyTableInUse(family: IpFamily, name: string, mostBytes: number): LegacyTable | undefined {
  if (!legacyTables(family)?.includes(name)) return undefined;
  try {
    return readTable(family, name, mostBytes);
  } catch (error) {
    if (error instanceof KernelError) return undefined;
    throw error;
  }
}

/**
 * How many entries a table of legacy iptables has in the network namespace of the calling thread: rules, and what stands for chains and
 * policies. 0 where it is not in use, undefined when nobody may know. It costs the same however many there are.
 */
export function legacyEntryCount(family: IpFamily, name: string): number | undefined {
  const tables = legacyTables(family);
  if (!tables?.includes(name)) return tables && 0;
  try {
    return withSocket(family, (ask) => readInfo(family, name, ask).entryCount);
  } catch (error) {
    if (error instanceof KernelError) return undefined;
    throw error;
  }
}

/** Fills the answer to a question, getsockopt(2), whose length is that of the answer. Throws KernelError. */
type Ask = (option: number, answer: Uint8Array) => void;

function withSocket<T>(family: LegacyFamily, work: (ask: Ask) => T): T {
  const { domain, level } = LAYOUTS[family];
  const c = libc();
  const fd = c.socket(domain, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
  try {
    return work((option, answer) => c.getsockopt(fd, level, option, answer));
  } finally {
    c.close(fd);
  }
}

/** What the kernel says about a table: struct ipt_getinfo, arpt_getinfo. */
interface TableInfo {
  readonly bytes: Buffer;
  readonly entryCount: number;
  /** Of all entries together, in bytes. */
  readonly size: number;
}

function readInfo(family: LegacyFamily, name: string, ask: Ask): TableInfo {
  const { getInfo, hooks } = LAYOUTS[family];
  /** Behind both lists of offsets. */
  const countAt = HOOK_ENTRY_AT + 4 * 2 * hooks;
  const bytes = Buffer.alloc(countAt + 8);
  bytes.write(name, 'latin1');
  ask(getInfo, bytes);
  return { bytes, entryCount: bytes.readUInt32LE(countAt), size: bytes.readUInt32LE(countAt + 4) };
}

function readTable(family: LegacyFamily, name: string, mostBytes: number): LegacyTable | undefined {
  return withSocket(family, (ask) => {
    for (let attempt = 1; ; attempt++) {
      const { bytes, size } = readInfo(family, name, ask);
      if (size > mostBytes) return undefined;
      try {
        return new LegacyTable(family, bytes, readEntries(family, name, size, ask));
      } catch (error) {
        // It was replaced between the two questions.
        if (!(error instanceof KernelError && error.errnoName === 'EAGAIN') || attempt === ATTEMPTS) throw error;
      }
    }
  });
}

/** struct ipt_get_entries, arpt_get_entries: without what stands before the entries. */
function readEntries(family: LegacyFamily, name: string, size: number, ask: Ask): Buffer {
  const answer = allocateForKernel(ENTRIES_AT + size);
  answer.fill(0, 0, ENTRIES_AT);
  answer.write(name, 'latin1');
  answer.writeUInt32LE(size, NAME_LENGTH);
  ask(LAYOUTS[family].getInfo + 1, answer);
  return answer.subarray(ENTRIES_AT);
}

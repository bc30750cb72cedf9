import { readFileSync } from 'node:fs';
import { type IpFamily, KernelError } from '../core/index.ts';
import { libc } from './libc.ts';

/*
 * Legacy iptables has no netlink interface: a table is read whole, by socket options.
 *
 *   struct ipt_getinfo { char name[32]; u32 valid_hooks, hook_entry[5], underflow[5], num_entries, size; }
 *   struct ipt_get_entries { char name[32]; u32 size, unused; struct ipt_entry entrytable[]; }
 *   struct ipt_entry { struct ipt_ip ip; u32 nfcache; u16 target_offset, next_offset; u32 comefrom; u64 counters[2]; }
 *   struct xt_entry_target { u16 size; char name[29]; u8 revision; }, in the standard target followed by s32 verdict
 *
 * <linux/netfilter_ipv4/ip_tables.h>, <linux/netfilter_ipv6/ip6_tables.h>, <linux/netfilter/x_tables.h>. Numbers are in host
 * byte order, offsets of entries are counted from the first one.
 */

const NAME_LENGTH = 32;
const NF_INET_FORWARD = 2;
const HOOK_ENTRY_AT = 36 + 4 * NF_INET_FORWARD;
const UNDERFLOW_AT = 56 + 4 * NF_INET_FORWARD;
const SIZE_AT = 80;
const INFO_SIZE = 84;
const ENTRIES_AT = 40;
/** Behind the comparisons. */
const TARGET_OFFSET_AT = 4;
const NEXT_OFFSET_AT = 6;
/** In a target: its name, and the verdict of the standard one. */
const TARGET_NAME_AT = 2;
const VERDICT_AT = 32;
/** NF_DROP as a verdict of the standard target: -NF_DROP - 1. */
const DROP = -1;

const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const IPPROTO_RAW = 255;
const SO_GET_INFO = 64;
const SO_GET_ENTRIES = 65;

interface FamilyLayout {
  /** Names of the tables in use in the thread's namespace, one a line. */
  readonly tables: string;
  /** AF_* and SOL_*. */
  readonly domain: number;
  readonly level: number;
  /** sizeof(ipt_ip), the comparisons every entry has; all zero when they are true of every packet. */
  readonly comparisons: number;
  /** sizeof(ipt_entry); what comes behind, up to the target, are matches. */
  readonly entry: number;
}

const LAYOUTS: Record<IpFamily, FamilyLayout> = {
  IPv4: { tables: '/proc/thread-self/net/ip_tables_names', domain: 2, level: 0, comparisons: 84, entry: 112 },
  IPv6: { tables: '/proc/thread-self/net/ip6_tables_names', domain: 10, level: 41, comparisons: 136, entry: 168 },
};

/**
 * Whether chain FORWARD of legacy iptables' table filter, in the network namespace of the calling thread, drops or rejects
 * whatever none of its rules has accepted: by its policy, or by a rule for every packet. False where that table is not in
 * use: asking the kernel for one would make it.
 */
export function legacyForwardRefuses(family: IpFamily): boolean {
  const layout = LAYOUTS[family];
  if (!legacyTables(family)?.includes('filter')) return false;
  const table = readTable(layout);
  return table !== undefined && rulesOf(table, layout).some((rule) => refusesAll(rule, layout));
}

/** The tables of legacy iptables in the network namespace of the calling thread. Undefined when nobody may read which. */
export function legacyTables(family: IpFamily): string[] | undefined {
  try {
    return readFileSync(LAYOUTS[family].tables, 'utf8').split('\n').filter(Boolean);
  } catch (error) {
    // No legacy iptables in this kernel, or not used yet.
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? [] : undefined;
  }
}

interface Table {
  readonly entries: Buffer;
  /** Offset of FORWARD's first entry, and of its last, which is the policy. */
  readonly first: number;
  readonly last: number;
}

/** Undefined when it keeps changing, or nobody may read it. */
function readTable({ domain, level }: FamilyLayout): Table | undefined {
  const c = libc();
  let fd: number | undefined;
  try {
    fd = c.socket(domain, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
    const info = Buffer.alloc(INFO_SIZE);
    info.write('filter', 'latin1');
    c.getsockopt(fd, level, SO_GET_INFO, info);
    const size = info.readUInt32LE(SIZE_AT);
    const entries = Buffer.alloc(ENTRIES_AT + size);
    entries.write('filter', 'latin1');
    entries.writeUInt32LE(size, NAME_LENGTH);
    c.getsockopt(fd, level, SO_GET_ENTRIES, entries);
    return {
      entries: entries.subarray(ENTRIES_AT),
      first: info.readUInt32LE(HOOK_ENTRY_AT),
      last: info.readUInt32LE(UNDERFLOW_AT),
    };
  } catch (error) {
    // EAGAIN: it was replaced between the two questions. The next look tells.
    if (error instanceof KernelError) return undefined;
    throw error;
  } finally {
    if (fd !== undefined) c.close(fd);
  }
}

function rulesOf({ entries, first, last }: Table, { comparisons, entry }: FamilyLayout): Buffer[] {
  const rules: Buffer[] = [];
  for (let at = first; at <= last && at + entry <= entries.length; ) {
    const length = entries.readUInt16LE(at + comparisons + NEXT_OFFSET_AT);
    if (length < entry) break;
    rules.push(entries.subarray(at, at + length));
    at += length;
  }
  return rules;
}

function refusesAll(rule: Buffer, { comparisons, entry }: FamilyLayout): boolean {
  const targetAt = rule.readUInt16LE(comparisons + TARGET_OFFSET_AT);
  const hasMatches = targetAt > entry;
  if (hasMatches || rule.subarray(0, comparisons).some((byte) => byte !== 0)) return false;
  const name = rule.toString('latin1', targetAt + TARGET_NAME_AT, rule.indexOf(0, targetAt + TARGET_NAME_AT));
  return name === 'REJECT' || (name === '' && rule.readInt32LE(targetAt + VERDICT_AT) === DROP);
}

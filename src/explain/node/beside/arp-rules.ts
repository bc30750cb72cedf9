import {
  type BuiltInChain,
  type LegacyEntry,
  type LegacyTable,
  legacyTables,
  readLegacyTable,
} from '../../../sys/index.ts';

// Legacy arptables, which has one table, "filter".

/**
 * Its chains by number, NF_ARP_* of <linux/netfilter_arp.h>: frames that a bridge switches meet the last one, where it
 * shows them (bridge-nf-call-arptables).
 */
const CHAINS = ['INPUT', 'OUTPUT', 'FORWARD'] as const;

/** A chain of arptables that may drop or change what passes it. */
export interface ArpChain {
  readonly name: (typeof CHAINS)[number];
  /** Names of links whose ARP it may stop; one that ends with `*` is the beginning of names. Undefined: of all. */
  readonly links: readonly string[] | undefined;
}

/** -NF_ACCEPT - 1 and XT_RETURN (-NF_REPEAT - 1) as verdicts of the standard target. */
const HARMLESS: ReadonlySet<number> = new Set([-2, -5]);
const ACCEPT = -2;

/** Offsets in struct arpt_arp of a name of a link, 16 bytes, and of its mask, and the bit of invflags. */
const IN = { name: 94, mask: 126, inverted: 1 } as const;
const OUT = { name: 110, mask: 142, inverted: 2 } as const;
const INVERTED_AT = 160;
const NAME_LENGTH = 16;

/**
 * The chains of arptables in the network namespace of the calling thread that do anything (arpt_do_table,
 * net/ipv4/netfilter/arp_tables.c).
 *
 * @throws KernelError
 */
export function arpChains(): ArpChain[] {
  return (legacyTables('ARP') ?? []).flatMap((name) => {
    const table = readLegacyTable('ARP', name);
    return CHAINS.flatMap((chain, hook) => {
      const builtIn = table.builtIn[hook];
      const links = builtIn && linksOf(table, builtIn, chain === 'OUTPUT' ? OUT : IN);
      return links === undefined || links.length === 0
        ? []
        : [{ name: chain, links: links === 'all' ? undefined : links }];
    });
  });
}

/** Whose ARP may be stopped; empty: nobody's. */
function linksOf(table: LegacyTable, { first, policy }: BuiltInChain, side: typeof IN | typeof OUT): string[] | 'all' {
  if (verdictOf(table.entry(policy)) !== ACCEPT) return 'all';
  const links = new Set<string>();
  for (let at = first; at < policy; ) {
    const entry = table.entry(at);
    if (!entry) return 'all';
    at = entry.next;
    const verdict = verdictOf(entry);
    if (verdict !== undefined && HARMLESS.has(verdict)) continue;
    const link = linkOf(entry, side);
    if (link === undefined) return 'all';
    links.add(link);
  }
  return [...links];
}

/** Of the standard target; undefined: it has another one. */
function verdictOf(entry: LegacyEntry | undefined): number | undefined {
  return entry?.target.name === '' ? entry.target.info.readInt32LE(0) : undefined;
}

/** The link that an entry asks for; undefined: it may be any. */
function linkOf({ comparisons }: LegacyEntry, { name, mask, inverted }: typeof IN | typeof OUT): string | undefined {
  const length = comparisons.subarray(mask, mask + NAME_LENGTH).indexOf(0);
  if (length === 0 || (comparisons.readUInt16LE(INVERTED_AT) & inverted) !== 0) return undefined;
  const text = comparisons.toString('latin1', name, name + (length < 0 ? NAME_LENGTH : length));
  // The mask of a whole name has the zero at its end, too.
  return text.endsWith('\0') ? text.slice(0, -1) : `${text}*`;
}

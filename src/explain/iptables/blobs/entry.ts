import type { LegacyEntry } from '../../../sys/index.ts';
import { PROTOCOLS } from '../../packet/index.ts';
import type { Extension, Option, ParsedRule } from '../parse-rule.ts';
import { Blob, type BlobContext, optionIf, unreadable } from './blob.ts';
import { decodeMatch } from './matches.ts';
import { decodeTarget } from './targets.ts';

/*
 * struct ipt_ip { in_addr src, dst, smsk, dmsk; char iniface[16], outiface[16]; u8 iniface_mask[16], outiface_mask[16];
 *   u16 proto; u8 flags, invflags; }, <linux/netfilter_ipv4/ip_tables.h>
 * struct ip6t_ip6 has the same with addresses of 16 bytes, and `u8 tos` before the flags, <linux/netfilter_ipv6/ip6_tables.h>
 */
const LAYOUTS = {
  IPv4: { address: 4, flags: 82, inverted: 83, goto: 2, fragment: 1 },
  IPv6: { address: 16, flags: 131, inverted: 132, goto: 4, fragment: 0 },
} as const;
/** IPT_INV_*, the same for IPv6. */
const INVERTED = { iif: 1, oif: 2, source: 8, destination: 0x10, fragment: 0x20, protocol: 0x40 };

/** Verdicts of the standard target that are no jumps: -NF_DROP - 1 and so on, XT_RETURN. */
const VERDICTS: Readonly<Record<number, string>> = { [-1]: 'DROP', [-2]: 'ACCEPT', [-4]: 'QUEUE', [-5]: 'RETURN' };

/** What a rule is read with. */
export interface EntryContext extends BlobContext {
  /** The chain whose first rule is at an offset. */
  chainAt(offset: number): string | undefined;
}

/** A rule, and whether all of it could be read: what could not stands there by names nobody evaluates. */
export interface DecodedEntry {
  readonly rule: ParsedRule;
  readonly isWhole: boolean;
}

/** Takes an entry of legacy iptables apart, as `parseRule` takes what is printed of it. */
export function decodeEntry(entry: LegacyEntry, context: EntryContext): DecodedEntry {
  const matches = entry.matches.map((match) => decodeMatch(match, context));
  const target = targetOf(entry, context);
  const { flags, goto } = LAYOUTS[context.family];
  const isGoto = (entry.comparisons[flags]! & goto) !== 0;
  return {
    rule: {
      own: comparisons(entry, context),
      matches: entry.matches.map((match, index) => matches[index] ?? unreadable(match)),
      target: target === 'none' ? undefined : { ...(target ?? unreadable(entry.target)), goto: isGoto },
    },
    isWhole: target !== undefined && !matches.includes(undefined),
  };
}

/** `none` for a rule that only counts: its verdict is the next entry. */
function targetOf({ target, next }: LegacyEntry, context: EntryContext): Extension | 'none' | undefined {
  if (target.name !== '') return decodeTarget(target, context);
  const verdict = target.info.readInt32LE(0);
  if (verdict === next) return 'none';
  const name = verdict < 0 ? VERDICTS[verdict] : context.chainAt(verdict);
  return name === undefined ? undefined : { name, options: [] };
}

function comparisons({ comparisons: bytes }: LegacyEntry, context: BlobContext): Option[] {
  const { address, flags, inverted, fragment } = LAYOUTS[context.family];
  const blob = new Blob(bytes, context);
  const [masks, interfaces] = [2 * address, 4 * address];
  const [protocol, not] = [blob.u16(interfaces + 64), blob.u8(inverted)];
  const compared = (name: string, at: number, bit: number) => {
    const isGiven = blob.bytes(at, address).some(Boolean) || blob.bytes(at + masks, address).some(Boolean);
    return isGiven || (not & bit) !== 0 ? optionIf(true, name, [blob.network(at, at + masks)], (not & bit) !== 0) : [];
  };
  // A mask without bits is every interface, `+`: turned round it is none.
  const onInterface = (name: string, at: number, bit: number) =>
    optionIf(
      blob.u8(at + 32) !== 0 || (not & bit) !== 0,
      name,
      [blob.interfacePattern(at, at + 32)],
      (not & bit) !== 0,
    );
  return [
    ...compared('-s', 0, INVERTED.source),
    ...compared('-d', address, INVERTED.destination),
    ...onInterface('-i', interfaces, INVERTED.iif),
    ...onInterface('-o', interfaces + 16, INVERTED.oif),
    ...optionIf(protocol !== 0, '-p', [protocolText(protocol)], (not & INVERTED.protocol) !== 0),
    ...optionIf((blob.u8(flags) & fragment) !== 0, '-f', [], (not & INVERTED.fragment) !== 0),
  ];
}

/** By the names of the save programs, as far as packets that are walked have them. */
function protocolText(protocol: number): string {
  return Object.entries(PROTOCOLS).find(([, number]) => number === protocol)?.[0] ?? String(protocol);
}

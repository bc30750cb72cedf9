import { parseIp } from '../../core/index.ts';
import { ENOUGH_HOPS, HEADER_FIELDS, KnownBytes, type Packet } from '../packet/index.ts';
import { masquerade, type NewEnds, type Outcome, redirect, type Situation, translate } from '../walk/index.ts';
import type { Facts } from './facts.ts';
import { change, findInSet } from './match-kernel.ts';
import type { Extension, Option } from './parse-rule.ts';
import { markBytes, parseMark, portBytes } from './values.ts';

/** What a target is asked with. */
interface Asked extends Situation {
  readonly facts: Facts;
  readonly options: ReadonlyMap<string, Option>;
}

const CONTINUE: Outcome = { kind: 'continue' };
const goesOn = (): Outcome => CONTINUE;
const unknown = (about: string): Outcome => ({ kind: 'cannot tell', about });
/** How a translation chooses when there is a choice; nothing of that is known anyway. */
const MANNERS = ['--random', '--random-fully', '--persistent'];

/** So many source ports are hardly ever all taken. */
const MANY_PORTS = 4096;

/** What each target does. One that is not here is not known. */
const TARGETS: Readonly<Record<string, (asked: Asked) => Outcome>> = {
  ACCEPT: () => ({ kind: 'accept' }),
  DROP: () => ({ kind: 'drop' }),
  RETURN: () => ({ kind: 'return' }),
  REJECT: ({ options }) => ({ kind: 'reject', how: options.get('--reject-with')?.values[0] ?? 'icmp' }),
  MARK({ options, packet }) {
    const mark = parseMark(options.get('--set-xmark')?.values[0]);
    if (!mark || options.size !== 1) return unknown('target MARK');
    packet.mark = changed(packet.mark, mark);
    return CONTINUE;
  },
  CONNMARK: connmark,
  NOTRACK: notrack,
  CT({ options, packet }) {
    if (!options.has('--notrack') || options.size !== 1) return unknown('target CT');
    return notrack({ packet });
  },
  DNAT({ options, packet }) {
    const ends = destination(only(options, '--to-destination'));
    return ends ? translate(packet, 'destination', ends) : unknown('target DNAT');
  },
  SNAT({ options, packet }) {
    const to = only(options, '--to-source');
    // A port of the source may be taken: then the kernel chooses another.
    const ends = destination(to);
    if (!ends || ends.destinationPort) return unknown(ends ? 'the one port of target SNAT' : 'target SNAT');
    return translate(packet, 'source', { source: ends.destination!, sourcePort: KnownBytes.unknown(2) });
  },
  MASQUERADE({ options, packet, host }) {
    const isKnown = [...options.keys()].every((name) => name === '--to-ports' || MANNERS.includes(name));
    const ports = options.get('--to-ports')?.values[0];
    if (ports !== undefined && !hasManyPorts(ports)) return unknown('the few ports of target MASQUERADE');
    return isKnown ? translate(packet, 'source', masquerade(packet, host)) : unknown('target MASQUERADE');
  },
  REDIRECT({ options, packet, host }) {
    const port = only(options, '--to-ports');
    if (options.has('--to-ports') && !/^\d+$/.test(port ?? '')) return unknown('target REDIRECT');
    const to = port === undefined ? undefined : KnownBytes.of(portBytes(Number(port)));
    return translate(packet, 'destination', redirect(packet, host, to));
  },
  SET: mapped,
  NFQUEUE: queued,
  LOG: goesOn,
  NFLOG: goesOn,
  TRACE: goesOn,
  AUDIT: goesOn,
  // A copy goes elsewhere, and is kept out of connection tracking (nf_dup_ipv4, net/ipv4/netfilter/nf_dup_ipv4.c).
  TEE: goesOn,
  RATEEST: goesOn,
  IDLETIMER: goesOn,
  DSCP: classed,
  TOS: classed,
  TTL: ({ options, packet }) => withHops(options.get('--ttl-set'), packet),
  HL: ({ options, packet }) => withHops(options.get('--hl-set'), packet),
  // They change what no rule here looks at: options of TCP, checksums, classes of traffic in this host.
  TCPMSS: goesOn,
  TCPOPTSTRIP: goesOn,
  CHECKSUM: goesOn,
  CLASSIFY: goesOn,
};

/** Without a listener at its queue a packet is dropped, or goes on behind the table (nf_queue, net/netfilter/nf_queue.c). */
function queued({ options, facts }: Asked): Outcome {
  const range = (options.get('--queue-num') ?? options.get('--queue-balance'))?.values[0];
  const [first = Number.NaN, last = first] = (range ?? '').split(':').map(Number);
  for (let queue = first; queue <= last; queue++) {
    if (facts.isQueueHeard?.(queue) !== false) return unknown('target NFQUEUE');
  }
  return range === undefined ? unknown('target NFQUEUE') : { kind: options.has('--queue-bypass') ? 'accept' : 'drop' };
}

/** It has another class of traffic (TOS, DSCP), which matters where policy rules ask for that. */
function classed({ packet, host }: Asked): Outcome {
  if (host.routesByClass?.(packet.family) ?? false)
    return unknown('target DSCP or TOS, whose class policy rules ask for');
  for (const at of HEADER_FIELDS[packet.family].trafficClass)
    packet.network = packet.network.with(at, KnownBytes.unknown(1));
  return CONTINUE;
}

function withHops(set: Option | undefined, packet: Packet): Outcome {
  const left = Number(set?.values[0] ?? 0);
  if (left < ENOUGH_HOPS) return unknown('target TTL or HL');
  packet.network = packet.network.with(HEADER_FIELDS[packet.family].hops, KnownBytes.of(Uint8Array.of(left)));
  return CONTINUE;
}

/** Does what a target does; `cannot tell` for one whose effect is not known. */
export function applyTarget({ name, options }: Extension, situation: Situation & { readonly facts: Facts }): Outcome {
  const target = Object.hasOwn(TARGETS, name) ? TARGETS[name] : undefined;
  if (!target) return unknown(`target ${name}`);
  return target({ ...situation, options: new Map(options.map((option) => [option.name, option])) });
}

/** The value of an option, if there is nothing else that matters. */
function only(options: ReadonlyMap<string, Option>, wanted: string): string | undefined {
  const isKnown = [...options.keys()].every((name) => name === wanted || MANNERS.includes(name));
  return isKnown ? options.get(wanted)?.values[0] : undefined;
}

/** Whether there are enough source ports that one is free: of fewer, connections of others may have all. */
function hasManyPorts(range: string): boolean {
  const [first = 0, last = first] = range.split('-').map(Number);
  return last - first >= MANY_PORTS;
}

/** `10.0.0.1`, `10.0.0.1:80`, `[fd00::1]:80`, `:80`; undefined for ranges, of which the kernel takes one. */
function destination(text: string | undefined): NewEnds | undefined {
  const [, bracketed, bare, port] =
    /^(?:\[([^\]]+)\]|([\d.]*|[\da-f:]*:[\da-f:.]*))(?::(\d+))?$/.exec(text ?? '') ?? [];
  const address = bracketed ?? bare;
  if (text === undefined || address === undefined) return undefined;
  return {
    ...(address !== '' && { destination: KnownBytes.of(parseIp(address).bytes) }),
    ...(port !== undefined && { destinationPort: KnownBytes.of(portBytes(Number(port))) }),
  };
}

/** nft_notrack_eval and notrack_tg leave alone what is tracked already. */
function notrack({ packet }: { readonly packet: Packet }): Outcome {
  packet.connection ??= 'untracked';
  return CONTINUE;
}

/** (mark & ~mask) ^ value: mark_tg, net/netfilter/xt_mark.c. */
function changed(mark: KnownBytes, { value, mask }: { readonly value: number; readonly mask: number }): KnownBytes {
  return mark.masked(markBytes(~mask >>> 0), markBytes(value));
}

/** connmark_tg_shift, net/netfilter/xt_connmark.c, without shifts. */
function connmark({ options, packet }: Asked): Outcome {
  const { connection } = packet;
  if (connection === undefined || connection === 'untracked') return CONTINUE;
  const given = (name: string) => options.get(name)?.values[0];
  const [set, nfmask, ctmask] = [given('--set-xmark'), given('--nfmask'), given('--ctmask')].map(parseMark);
  if (options.size === 1 && set) {
    connection.mark = changed(connection.mark, set);
    return CONTINUE;
  }
  if (options.size !== 3 || !nfmask || !ctmask) return unknown('target CONNMARK');
  const none = new Uint8Array(4);
  const [nf, ct] = [nfmask.value, ctmask.value].map(markBytes);
  if (options.has('--save-mark')) {
    connection.mark = connection.mark.masked(markBytes(~ctmask.value >>> 0), none).xor(packet.mark.masked(nf!, none));
  } else if (options.has('--restore-mark')) {
    packet.mark = packet.mark.masked(markBytes(~nfmask.value >>> 0), none).xor(connection.mark.masked(ct!, none));
  } else return unknown('target CONNMARK');
  return CONTINUE;
}

/** `-j SET --map-set NAME dst,dst --map-mark`, or one that changes a set, which is then not known. */
function mapped({ options, packet, facts }: Asked): Outcome {
  for (const changing of ['--add-set', '--del-set']) {
    const name = options.get(changing)?.values[0];
    if (name !== undefined) change(name, { packet, facts });
  }
  const map = options.get('--map-set');
  if (!map) return CONTINUE;
  const [name, directions] = map.values;
  const found = findInSet(name!, directions!, { packet, facts });
  if (found === undefined || options.size !== 2 || !options.has('--map-mark')) return unknown('target SET --map-set');
  if (found !== 'not there' && found.mark !== undefined) {
    packet.mark = changed(packet.mark, { value: found.mark, mask: found.markMask ?? 0xffff_ffff });
  }
  return CONTINUE;
}

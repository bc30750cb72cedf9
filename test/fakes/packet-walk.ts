import { cidrContains, parseAddressWithPrefix, parseIp } from '../../src/core/index.ts';
import { targetOf } from '../../src/proxy/rules/index.ts';

/** The first packet of a connection, as the rules see it. */
export interface Packet {
  /** IP addresses as text, both of one family. */
  readonly source: string;
  readonly destination: string;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  /** Destination port. */
  readonly port: number;
  /** Where it came in. @default it comes from the node itself, and matches no interface */
  readonly inInterface?: string;
  /** Addresses of the node itself, spelled as those of the packet. @default none */
  readonly nodeAddresses?: readonly string[];
}

/** What became of it in one table. */
export interface Walk {
  /** Where DNAT may send it (`--to-destination`): several when a chance decides. */
  readonly destinations: readonly string[];
  /** ACCEPT, DROP, REJECT or MASQUERADE; undefined when it came back unharmed. */
  readonly verdict: string | undefined;
  /** It got the masquerade mark, or is masqueraded here. */
  readonly masqueraded: boolean;
  /** Rules looked at until the end; for a chance, as if it never came true. */
  readonly met: number;
}

/**
 * Follows a packet through the chains of one table as the kernel does (iptables(8): jump, goto, RETURN at the end of a
 * chain), knowing the matches our rules use; any other match holds. Both outcomes of a chance (`statistic`) are followed;
 * memory of earlier connections (`recent --rcheck`) is taken to be empty.
 *
 * @param chains the rules of each chain as iptables-save prints them, without `-A CHAIN`; without loops
 * @param entry the chain it begins in
 * @throws Error when there is no chain `entry`
 */
export function walkPacket(chains: ReadonlyMap<string, readonly string[]>, entry: string, packet: Packet): Walk {
  const destinations: string[] = [];
  let masqueraded = false;
  let met = 0;

  /** The target that decides the packet; undefined when the chain ends without one. */
  const follow = (name: string): string | undefined => {
    const rules = chains.get(name);
    if (!rules) throw new Error(`No chain ${name}`);
    for (const rule of rules) {
      met++;
      const target = matches(rule, packet) ? targetOf(rule) : undefined;
      if (target === undefined) continue;
      if (target === 'RETURN') return undefined;
      const byChance = rule.includes('-m statistic');
      if (target === 'DNAT') {
        destinations.push(/--to-destination (\S+)/.exec(rule)![1]!);
        if (!byChance) return target;
      } else if (target === 'MARK') {
        masqueraded = true;
      } else if (chains.has(target)) {
        const verdict = follow(target);
        if (verdict && !byChance) return verdict;
        if (isGoto(rule)) return undefined;
      } else {
        if (target === 'MASQUERADE') masqueraded = true;
        return target;
      }
    }
    return undefined;
  };
  const verdict = follow(entry);
  return { destinations, verdict: verdict === 'DNAT' ? undefined : verdict, masqueraded, met };
}

function isGoto(rule: string): boolean {
  return /(?:^| )-g [^\s"]+$/.test(rule);
}

/** The matches that are looked at: option and value, `!` before it turns them round. */
const MATCHES: readonly (readonly [pattern: RegExp, holds: (value: string, packet: Packet) => boolean])[] = [
  [/(! )?-s (\S+)/, (value, { source }) => inNetwork(value, source)],
  [/(! )?-d (\S+)/, (value, { destination }) => inNetwork(value, destination)],
  [/(! )?-i (\S+)/, (value, { inInterface }) => inInterface === value],
  [/(! )?-p (\S+)/, (value, { protocol }) => protocol === value],
  [/(! )?--dport (\S+)/, (value, { port }) => inRange(value, port)],
  [/(! )?--src-type (LOCAL)/, (_, { source, nodeAddresses }) => nodeAddresses?.includes(source) ?? false],
  [/(! )?--dst-type (LOCAL)/, (_, { destination, nodeAddresses }) => nodeAddresses?.includes(destination) ?? false],
  [/(! )?(--rcheck)/, () => false],
];

function matches(rule: string, packet: Packet): boolean {
  // A comment may hold anything.
  const text = rule.replace(/--comment ("[^"]*"|\S+)/, '--comment');
  return MATCHES.every(([pattern, holds]) => {
    const found = pattern.exec(text);
    return !found || holds(found[2]!, packet) !== (found[1] !== undefined);
  });
}

/** @param network `ADDRESS/LENGTH` or `ADDRESS/MASK`, whose bits need not be in a row */
function inNetwork(network: string, address: string): boolean {
  const [base, mask] = network.split('/');
  if (/^\d+$/.test(mask!)) return cidrContains(parseAddressWithPrefix(network), parseIp(address));
  const [wanted, looked, given] = [base!, mask!, address].map((text) => parseIp(text).bytes);
  return wanted!.every((byte, index) => byte === (given![index]! & looked![index]!));
}

/** @param range `PORT` or `FIRST:LAST` */
function inRange(range: string, port: number): boolean {
  const [first, last = first] = range.split(':').map(Number);
  return port >= first! && port <= last!;
}

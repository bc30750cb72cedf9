import { cidrContains, parseAddressWithPrefix, parseIp } from '../../../src/core/index.ts';

/** The first packet of a connection, as the rules see it. */
export interface Packet {
  readonly source: string;
  readonly destination: string;
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  readonly port: number;
  readonly inInterface?: string;
  /** Addresses of the node itself. */
  readonly nodeAddresses?: readonly string[];
}

/** What became of it in one table. */
export interface Walk {
  /** Where DNAT may send it: several when a chance decides. */
  readonly destinations: readonly string[];
  /** ACCEPT, DROP, REJECT or MASQUERADE; undefined when it came back unharmed. */
  readonly verdict: string | undefined;
  readonly masqueraded: boolean;
  /** Rules looked at until the end; for a chance, as if it never came true. */
  readonly met: number;
}

/**
 * Follows a packet through chains as the kernel does (iptables(8): jump, goto, RETURN at the end of a chain), knowing
 * the matches our rules use. What depends on chance or on memory is explored on both sides (`statistic`) or taken as
 * a first contact (`recent`).
 */
export function walkPacket(chains: ReadonlyMap<string, readonly string[]>, entry: string, packet: Packet): Walk {
  const destinations: string[] = [];
  let masqueraded = false;
  let met = 0;

  /** True when the packet is decided. */
  const run = (name: string): string | undefined => {
    const rules = chains.get(name);
    if (!rules) throw new Error(`No chain ${name}`);
    for (const rule of rules) {
      met++;
      if (!matches(rule, packet)) continue;
      const [, how, target] = /(?:^| )-([jg]) ([\w.:/-]+)[^"]*$/.exec(rule) ?? [];
      if (!target) continue;
      if (target === 'DNAT') {
        destinations.push(/--to-destination (\S+)/.exec(rule)![1]!);
        if (!rule.includes('statistic')) return 'DNAT';
      } else if (target === 'MARK') {
        masqueraded = true;
      } else if (target === 'RETURN') {
        return undefined;
      } else if (!chains.has(target)) {
        if (target === 'MASQUERADE') masqueraded = true;
        return target;
      } else {
        const verdict = run(target);
        const byChance = rule.includes('statistic');
        if (verdict && !byChance) return verdict;
        if (how === 'g') return undefined;
      }
    }
    return undefined;
  };
  const verdict = run(entry);
  return { destinations, verdict: verdict === 'DNAT' ? undefined : verdict, masqueraded, met };
}

function matches(rule: string, packet: Packet): boolean {
  const text = rule.replace(/--comment ("[^"]*"|\S+)/, '--comment');
  const local = (ip: string) => packet.nodeAddresses?.includes(ip) ?? false;
  const known: [RegExp, (value: string) => boolean][] = [
    [/(! )?-s (\S+)/, (value) => inNetwork(value, packet.source)],
    [/(! )?-d (\S+)/, (value) => inNetwork(value, packet.destination)],
    [/(! )?-i (\S+)/, (value) => packet.inInterface === value],
    [/(! )?-p (\S+)/, (value) => value === packet.protocol],
    [/(! )?--dport (\S+)/, (value) => inRange(value, packet.port)],
    [/(! )?--src-type (LOCAL)/, () => local(packet.source)],
    [/(! )?--dst-type (LOCAL)/, () => local(packet.destination)],
    [/(! )?(--rcheck)/, () => false],
  ];
  return known.every(([pattern, holds]) => {
    const found = pattern.exec(text);
    return !found || holds(found[2]!) !== (found[1] !== undefined);
  });
}

/** @param network `ADDRESS/LENGTH` or `ADDRESS/MASK`, whose bits need not be in a row */
function inNetwork(network: string, address: string): boolean {
  const [base, mask] = network.split('/');
  if (/^\d+$/.test(mask!)) return cidrContains(parseAddressWithPrefix(network), parseIp(address));
  const [wanted, looked, given] = [base!, mask!, address].map((text) => parseIp(text).bytes);
  return wanted!.every((byte, index) => byte === (given![index]! & looked![index]!));
}

function inRange(range: string, port: number): boolean {
  const [low, high = low] = range.split(':').map(Number);
  return port >= low! && port <= high!;
}

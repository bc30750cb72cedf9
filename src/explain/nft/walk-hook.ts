import { KnownBytes } from '../packet/index.ts';
import type { Situation } from './evaluate-rule.ts';
import { decide, isDecided, type Manipulation } from './nat.ts';
import type { BaseChainOf, Hook } from './surroundings.ts';
import { type ChainResult, type Step, walkChain } from './walk-chain.ts';

/** What a base chain hooks into, or what of the kernel does that rules take for granted: tracking, translation. */
interface Station {
  readonly priority: number;
  run(): ChainResult;
}

const ACCEPTED: ChainResult = { kind: 'accept' };
/** NF_IP_PRI_CONNTRACK, <linux/netfilter_ipv4.h>. */
const CONNTRACK_PRIORITY = -200;
/** NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC. */
const NAT_PRIORITY: Partial<Record<Hook, [number, Manipulation]>> = {
  prerouting: [-100, 'destination'],
  output: [-100, 'destination'],
  postrouting: [100, 'source'],
  input: [100, 'source'],
};

/**
 * Takes a packet through one hook: base chains by priority, connection tracking and translation at their places between
 * them. Chains of type nat run where the kernel translates, whatever their own priority; it orders them among each other
 * (nf_nat_inet_fn, net/netfilter/nf_nat_core.c).
 *
 * @param steps gets what matched
 * @returns `accept` when the packet leaves the hook; otherwise its end
 */
export function walkHook(hook: Hook, situation: Situation, steps: Step[]): ChainResult {
  const chains = situation.rules.baseChains(hook, situation.packet.family);
  const [filters, nats] = [
    chains.filter(({ base }) => base.type !== 'nat'),
    chains.filter(({ base }) => base.type === 'nat'),
  ];
  const stations: Station[] = filters.map((chain) => ({
    priority: chain.base.priority,
    run: () => walkChain(chain, hook, situation, steps),
  }));
  if (hook === 'prerouting' || hook === 'output') {
    insert(stations, { priority: CONNTRACK_PRIORITY, run: () => track(situation) });
  }
  const nat = NAT_PRIORITY[hook];
  if (nat) {
    const [priority, manipulation] = nat;
    insert(stations, { priority, run: () => runNat(nats, manipulation, hook, situation, steps) });
  }
  for (const station of stations) {
    const result = station.run();
    if (result.kind !== 'accept') return result;
  }
  return ACCEPTED;
}

/** In front of the first with a higher priority: what is there already ran first at the same one. */
function insert(stations: Station[], station: Station): void {
  const at = stations.findIndex(({ priority }) => priority > station.priority);
  stations.splice(at < 0 ? stations.length : at, 0, station);
}

/** The first packet of a flow gets an entry, unless a rule kept it out. */
function track({ packet }: Situation): ChainResult {
  packet.connection ??= {
    state: 'new',
    direction: 'original',
    original: packet.ends,
    status: 0,
    mark: KnownBytes.of(new Uint8Array(4)),
  };
  return ACCEPTED;
}

/** Only the first packet of a flow meets chains of type nat, and only until one of them has decided. */
function runNat(
  chains: readonly BaseChainOf[],
  manipulation: Manipulation,
  hook: Hook,
  situation: Situation,
  steps: Step[],
): ChainResult {
  const { connection } = situation.packet;
  if (connection === undefined || connection === 'untracked' || connection.state !== 'new') return ACCEPTED;
  for (const chain of chains) {
    if (isDecided(connection, manipulation)) return ACCEPTED;
    const result = walkChain(chain, hook, situation, steps);
    if (result.kind !== 'accept') return result;
  }
  if (!isDecided(connection, manipulation)) decide(connection, manipulation);
  return ACCEPTED;
}

import { type Connection, KnownBytes, type Packet } from '../packet/index.ts';
import type { Hook, RuleSource, Situation, Station, StationResult, Step } from './source.ts';
import { decide, IPS, isDecided, type Manipulation } from './translate.ts';

const ACCEPTED: StationResult = { kind: 'accept' };
/** NF_IP_PRI_CONNTRACK, <linux/netfilter_ipv4.h>. */
const CONNTRACK_PRIORITY = -200;
/** NF_IP_PRI_NAT_DST and NF_IP_PRI_NAT_SRC. */
const NAT_PRIORITY: Partial<Record<Hook, [number, Manipulation]>> = {
  prerouting: [-100, 'destination'],
  output: [-100, 'destination'],
  postrouting: [100, 'source'],
  input: [100, 'source'],
};

/** What is run in a hook. */
type Run = Pick<Station, 'priority' | 'run'> & Partial<Pick<Station, 'type'>>;

/**
 * Takes a packet through one hook: the stations of all sources by priority, connection tracking and translation at their
 * places between them. Stations of type nat run where the kernel translates, whatever their own priority; it orders them among
 * each other (nf_nat_inet_fn, net/netfilter/nf_nat_core.c).
 *
 * @param steps gets what matched
 * @param reroute where a packet was changed so that it is routed anew; what it returns ends it
 * @returns `accept` when the packet leaves the hook; otherwise its end there
 */
export function walkHook<E>(
  hook: Hook,
  sources: readonly RuleSource[],
  situation: Situation,
  steps: Step[],
  reroute: () => E | undefined,
): StationResult | E {
  const { packet } = situation;
  const all = inOrder(hook, sources, situation);
  const stations: Run[] = all.filter(({ type }) => type !== 'nat');
  const nats = all.filter(({ type }) => type === 'nat');
  if (hook === 'prerouting' || hook === 'output') {
    insert(stations, { priority: CONNTRACK_PRIORITY, run: track });
  }
  const nat = NAT_PRIORITY[hook];
  if (nat) {
    const [priority, manipulation] = nat;
    const run: Run['run'] = (situation, steps) => runNat(nats, manipulation, situation, steps);
    insert(stations, { priority, type: 'nat', run });
  }
  for (const station of stations) {
    const { type } = station;
    const before = hook === 'output' ? routingOf(packet, type) : undefined;
    const result = station.run(situation, steps);
    if (result.kind !== 'accept') return result;
    const isChanged = before !== undefined && (routingOf(packet, type) !== before || isRestored(packet, type));
    const ended = isChanged || result.isRerouted ? reroute() : undefined;
    if (ended) return ended;
  }
  return ACCEPTED;
}

/**
 * What the kernel compares to see whether a packet is to be routed anew (ip_route_me_harder): of chains of type route mark, addresses and
 * class (nf_route_table_hook4, net/netfilter/nft_chain_route.c), of translation its destination (nf_nat_ipv4_local_fn, nf_nat_proto.c).
 */
function routingOf({ network, mark, ends, family }: Packet, type: Run['type']): string | undefined {
  if (type === 'nat') return ends.destination.text;
  if (type !== 'route') return undefined;
  const { source, destination } = ends;
  return [mark, source, destination, network.slice(0, family === 'IPv4' ? 2 : 4)].map(({ text }) => text).join();
}

/** Whether translation gives an answer the client's address back, which the walk has put there from the start. */
function isRestored({ connection }: Packet, type: Run['type']): boolean {
  if (type !== 'nat' || connection === undefined || connection === 'untracked') return false;
  return connection.direction === 'reply' && connection.translated?.source !== undefined;
}

/**
 * The stations of all sources by priority. Among equals of one source its own order counts. Those of two sources were hooked in
 * in an order that only the kernel knows, the later one in front (nf_hook_entries_grow, net/netfilter/core.c): legacy tables when they
 * were first used, chains of nf_tables when they were made. So both orders are walked.
 */
function inOrder(hook: Hook, sources: readonly RuleSource[], { packet, choose }: Situation): Station[] {
  const lists = sources.map((source) => ({ name: source.name, stations: source.stations(hook, packet.family) }));
  const seen = new Map<string, string>();
  let clash: string | undefined;
  for (const { name, stations } of lists) {
    for (const { type, priority } of stations) {
      const place = `${type === 'nat'} ${priority}`;
      const other = seen.get(place);
      if (other !== undefined && other !== name) clash ??= `whether ${other} or ${name} comes first in hook ${hook}`;
      seen.set(place, name);
    }
  }
  if (clash !== undefined && choose('unknown', clash, 2) === 1) lists.reverse();
  return lists.flatMap(({ stations }) => stations).sort((a, b) => a.priority - b.priority);
}

/** In front of the first with a higher priority: what is there already ran first at the same one. */
function insert(stations: Run[], station: Run): void {
  const at = stations.findIndex(({ priority }) => priority > station.priority);
  stations.splice(at < 0 ? stations.length : at, 0, station);
}

/** A packet gets the entry of its flow, unless a rule kept it out; the first of a flow a new one. */
function track({ packet }: Situation): StationResult {
  if (packet.isInvalid) return ACCEPTED;
  packet.connection ??= packet.flow ?? {
    state: 'new',
    direction: 'original',
    original: packet.ends,
    status: 0,
    mark: KnownBytes.of(new Uint8Array(4)),
  };
  return ACCEPTED;
}

/** Only the first packet of a flow meets stations of type nat, and only until one of them has decided; the others follow it. */
function runNat(
  stations: readonly Station[],
  manipulation: Manipulation,
  situation: Situation,
  steps: Step[],
): StationResult {
  const { connection } = situation.packet;
  if (connection === undefined || connection === 'untracked') return ACCEPTED;
  if (connection.state !== 'new') {
    followFlow(situation.packet, connection, manipulation);
    return ACCEPTED;
  }
  for (const station of stations) {
    if (isDecided(connection, manipulation)) return ACCEPTED;
    const result = station.run(situation, steps);
    if (result.kind !== 'accept') return result;
  }
  if (!isDecided(connection, manipulation)) decide(connection, manipulation);
  return ACCEPTED;
}

/** Later packets are translated as the first one was, answers the other way round. */
function followFlow(
  packet: Packet,
  { direction, original, status, translated }: Connection,
  manipulation: Manipulation,
): void {
  // nf_nat_packet, net/netfilter/nf_nat_core.c.
  const decided = (manipulation === 'source') === (direction === 'original') ? IPS.srcNat : IPS.dstNat;
  if (!translated || (status & decided) === 0) return;
  if (direction === 'reply') {
    // The client's port is not known, and its answers have it from the start.
    if (manipulation === 'destination')
      packet.translate({ ...(translated.source && { destination: original.source }) });
    else {
      packet.translate({
        ...(translated.destination && { source: original.destination }),
        ...(translated.destinationPort && { sourcePort: original.destinationPort }),
      });
    }
    return;
  }
  const { source, sourcePort, destination, destinationPort } = translated;
  const ends = manipulation === 'source' ? { source, sourcePort } : { destination, destinationPort };
  packet.translate(ends);
}

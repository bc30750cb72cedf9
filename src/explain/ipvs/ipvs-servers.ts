import { formatIpPort, ipProtocolName } from '../../core/index.ts';
import type { Destination, VirtualServer, VirtualServerKey } from '../../netlink/ipvs/index.ts';
import { RTN_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import { KnownBytes, type Packet } from '../packet/index.ts';
import type { Hook, RuleSource, Situation, Station, StationResult, Step } from '../walk/index.ts';

/** What the kernel is asked for, or a fake. */
export interface IpvsReader {
  /** All virtual servers, of both families. */
  listServers(): readonly VirtualServer[];
  listDestinations(key: VirtualServerKey): readonly Destination[];
}

/**
 * ip_vs_in of ip_vs_ops4 and ip_vs_ops6 (net/netfilter/ipvs/ip_vs_core.c): one before source translation for what comes to this
 * host, two behind destination translation for what it sends.
 */
const PRIORITY: Partial<Record<Hook, number>> = { input: 99, output: -98 };

const ACCEPTED: StationResult = { kind: 'accept' };

/**
 * Virtual servers of IPVS. Which destination a scheduler takes is walked as a chance, among those with a weight; a server that
 * remembers its clients (persistence) may know better, and so does one whose connection is there already.
 */
export class IpvsServers implements RuleSource {
  readonly name = 'ipvs';
  readonly #reader: IpvsReader;
  #servers: readonly VirtualServer[] | undefined;
  readonly #destinations = new Map<VirtualServer, readonly Destination[]>();
  /** IPVS looks at a packet once (skb->ipvs_property). */
  readonly #sent = new WeakSet<Packet>();

  constructor(reader: IpvsReader) {
    this.#reader = reader;
  }

  stations(hook: Hook): readonly Station[] {
    const priority = PRIORITY[hook];
    if (priority === undefined) return [];
    return [{ type: 'filter', priority, run: (situation, steps) => this.#serve(hook, situation, steps) }];
  }

  #serve(hook: Hook, { packet, host, choose }: Situation, steps: Step[]): StationResult {
    if (this.#sent.has(packet)) return ACCEPTED;
    const server = this.#find(packet);
    if (server === 'cannot tell')
      return { kind: 'cannot tell', about: 'the virtual server of a mark or address not known' };
    if (!server) return ACCEPTED;
    const chain = { table: 'ipvs', name: describe(server.key) } as const;
    const step = (verdict: string): Step => ({ source: 'ipvs', hook, chain, rule: undefined, verdict });
    const usable = this.#destinationsOf(server).filter(({ weight }) => weight > 0);
    if (usable.length === 0) {
      // ip_vs_leave sends ICMP "port unreachable" and drops.
      steps.push(step('reject'));
      return { kind: 'reject', how: 'icmp-port-unreachable' };
    }
    const remembers = server.persistenceSeconds > 0 && usable.length > 1;
    const how = remembers
      ? `which destination ${chain.name} remembers`
      : `scheduler ${server.scheduler} of ${chain.name}`;
    const { address, port } = usable[choose(remembers ? 'unknown' : 'chance', how, usable.length)]!;
    steps.push(step(`to ${formatIpPort(address, port)}`));
    this.#sent.add(packet);
    packet.translate({
      destination: KnownBytes.of(address.bytes),
      destinationPort: KnownBytes.of(Uint8Array.of(port >> 8, port & 0xff)),
    });
    const type = host.addressType(packet.ends.destination);
    if (type === undefined)
      return { kind: 'cannot tell', about: 'the route to its destination', at: step('cannot tell') };
    return type === RTN_LOCAL ? ACCEPTED : { kind: 'sent anew' };
  }

  /** A mark counts before an address: ip_vs_service_find, net/netfilter/ipvs/ip_vs_ctl.c. */
  #find(packet: Packet): VirtualServer | undefined | 'cannot tell' {
    this.#servers ??= this.#reader.listServers();
    const { destination, destinationPort } = packet.ends;
    const ofMark = this.#servers.filter(({ key }) => key.kind === 'mark' && key.family === packet.family);
    const marked = first(ofMark, ({ key }) =>
      key.kind === 'mark' ? packet.mark.equals(new Uint8Array(Uint32Array.of(key.mark).buffer)) : false,
    );
    if (marked) return marked;
    const here = this.#servers.filter(
      ({ key }) => key.kind === 'address' && key.protocol === packet.protocol && key.address.family === packet.family,
    );
    const at = (port: (port: number) => boolean | undefined) =>
      first(here, ({ key }) => {
        if (key.kind !== 'address') return false;
        const same = destination.equals(key.address.bytes);
        return same === false ? false : port(key.port) === false ? false : same && port(key.port);
      });
    const exact = at((port) => destinationPort.equals(Uint8Array.of(port >> 8, port & 0xff)));
    // A server of every port has number 0.
    return exact ?? at((port) => port === 0);
  }

  #destinationsOf(server: VirtualServer): readonly Destination[] {
    const known = this.#destinations.get(server) ?? this.#reader.listDestinations(server.key);
    this.#destinations.set(server, known);
    return known;
  }
}

/** The first for which it is so; nobody can tell if that is not known of one before it. */
function first(
  servers: readonly VirtualServer[],
  is: (server: VirtualServer) => boolean | undefined,
): VirtualServer | undefined | 'cannot tell' {
  for (const server of servers) {
    const truth = is(server);
    if (truth === undefined) return 'cannot tell';
    if (truth) return server;
  }
  return undefined;
}

function describe(key: VirtualServerKey): string {
  if (key.kind === 'mark') return `mark 0x${key.mark.toString(16)}`;
  return `${formatIpPort(key.address, key.port)}/${(ipProtocolName(key.protocol) ?? String(key.protocol)).toLowerCase()}`;
}

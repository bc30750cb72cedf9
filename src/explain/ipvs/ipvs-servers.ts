import { formatIpPort, ipEquals, ipFromBytes, protocolText, readBe32 } from '../../core/index.ts';
import type {
  Destination,
  IpvsConnection,
  ListedDestination,
  VirtualServer,
  VirtualServerKey,
} from '../../netlink/ipvs/index.ts';
import { IP_VS_SVC_F_ONEPACKET, IP_VS_SVC_F_SCHED_MH_FALLBACK } from '../../netlink/uapi/ip-vs.ts';
import { RTN_LOCAL } from '../../netlink/uapi/rtnetlink.ts';
import { KnownBytes, type Packet } from '../packet/index.ts';
import type { Hook, Host, RuleSource, Situation, Station, StationResult, Step } from '../walk/index.ts';

type LimitedDestination = Destination & Pick<ListedDestination, 'connectionLimit' | 'forwarding'>;

/** What the kernel is asked for, or a fake. */
export interface IpvsReader {
  /** All virtual servers, of both families. */
  listServers(): readonly VirtualServer[];
  listDestinations(key: VirtualServerKey): readonly LimitedDestination[];
  /** Which destinations virtual servers with persistence remember for their clients. */
  listRemembered(): readonly IpvsConnection[];
  /** net/ipv4/vs/conntrack: connection tracking, hence masquerading, sees what is sent anew. */
  readonly isTracked: boolean;
  /** net/ipv4/vs/expire_quiescent_template: clients that are remembered for a destination of weight 0 get another one. */
  readonly forgetsDrained: boolean;
  /** See `reroutesAnswers`. */
  readonly reroutesAnswers: boolean;
  /** net/ipv4/vs/drop_packet: it drops some of the packets of new connections, always (3) and not only when memory is short. */
  readonly isDropping: boolean;
}

/**
 * ip_vs_in of ip_vs_ops4 and ip_vs_ops6 (net/netfilter/ipvs/ip_vs_core.c): one before source translation for what comes to this
 * host, two behind destination translation for what it sends.
 */
const PRIORITY: Partial<Record<Hook, number>> = { input: 99, output: -98 };

/**
 * ip_vs_out_hook of the same, for what answers: in front of source translation, so that hook postrouting finds the
 * address of the virtual server.
 */
const PRIORITY_OF_ANSWERS: Partial<Record<Hook, number>> = { input: 98, forward: 100, output: -99 };

const ACCEPTED: StationResult = { kind: 'accept' };

/**
 * Schedulers that give each destination its turn. Others choose by the client's address, or by connections and their
 * number: which one it is now is not known.
 */
const BY_TURNS: ReadonlySet<string> = new Set(['rr', 'wrr']);

/** FTPPORT, <net/ip_vs.h>. */
const FTP_PORT = 21;

/**
 * Those that choose by addresses refuse whom they find a destination of weight 0 for (ip_vs_sh.c, ip_vs_dh.c,
 * ip_vs_mh.c), unless a flag has them look on.
 */
const BY_ADDRESS: ReadonlySet<string> = new Set(['sh', 'dh', 'mh']);

/**
 * Virtual servers of IPVS, as the first packet of a connection meets them. Which destination a scheduler takes is
 * walked as a chance, or as not known, among those with a weight, unless the server remembers one for the client
 * (persistence).
 */
export class IpvsServers implements RuleSource {
  readonly name = 'ipvs';
  readonly #reader: IpvsReader;
  #servers: readonly VirtualServer[] | undefined;
  #remembered: readonly IpvsConnection[] | undefined;
  readonly #destinations = new Map<VirtualServer, readonly LimitedDestination[]>();
  /** IPVS looks at a packet once (skb->ipvs_property). */
  readonly #sent = new WeakSet<Packet>();

  constructor(reader: IpvsReader) {
    this.#reader = reader;
  }

  stations(hook: Hook): readonly Station[] {
    const [ofAnswers, priority] = [PRIORITY_OF_ANSWERS[hook], PRIORITY[hook]];
    const stations: Station[] = [];
    if (ofAnswers !== undefined)
      stations.push({ type: 'filter', priority: ofAnswers, run: ({ packet }) => this.#translateBack(hook, packet) });
    if (priority !== undefined)
      stations.push({ type: 'filter', priority, run: (situation, steps) => this.#serve(hook, situation, steps) });
    return stations;
  }

  #serve(hook: Hook, { packet, host, choose }: Situation, steps: Step[]): StationResult {
    if (this.#sent.has(packet)) return ACCEPTED;
    if (packet.ipvsDestination) return this.#send(packet, packet.ipvsDestination, host);
    const server = this.#find(packet);
    if (server === 'cannot tell')
      return { kind: 'cannot tell', about: 'the virtual server of a mark or address not known' };
    if (!server) return ACCEPTED;
    const chain = { table: 'ipvs', name: describe(server.key) } as const;
    const step = (verdict: string): Step => ({ source: 'ipvs', hook, chain, rule: undefined, verdict });
    const all = this.#destinationsOf(server);
    const usable = all.filter(({ weight }) => weight > 0);
    let chosen = this.#rememberedFor(server, packet);
    if (!chosen && usable.length === 0) {
      // ip_vs_leave sends ICMP "port unreachable" and drops.
      steps.push(step('reject'));
      return { kind: 'reject', how: 'icmp-port-unreachable' };
    }
    const { scheduler } = server;
    const about = this.#strangeness(server, all) ?? (chosen ? undefined : refusedByFew(server, all));
    if (about !== undefined) return { kind: 'cannot tell', about, at: step('cannot tell') };
    const isKnown = server.persistenceSeconds === 0 || packet.ends.source.isKnown;
    const how = isKnown ? `scheduler ${scheduler} of ${chain.name}` : `whom ${chain.name} remembers`;
    const isTurn = isKnown && BY_TURNS.has(scheduler);
    chosen ??= usable[choose(isTurn ? 'chance' : 'unknown', how, usable.length)]!;
    const { address, port } = chosen;
    steps.push(step(`to ${formatIpPort(address, port)}`));
    const destination = KnownBytes.of(address.bytes);
    const destinationPort = KnownBytes.of(Uint8Array.of(port >> 8, port & 0xff));
    const result = this.#send(packet, { destination, destinationPort }, host);
    return result.kind === 'cannot tell' ? { ...result, at: step('cannot tell') } : result;
  }

  /** Sends it to a destination (ip_vs_nat_xmit, net/netfilter/ipvs/ip_vs_xmit.c). */
  #send(packet: Packet, to: NonNullable<Packet['ipvsDestination']>, host: Host): StationResult {
    this.#sent.add(packet);
    this.#keepOut(packet);
    packet.translate(to);
    const type = host.addressType(packet.ends.destination);
    if (type === undefined) return { kind: 'cannot tell', about: 'the route to its destination' };
    return type === RTN_LOCAL ? ACCEPTED : { kind: 'sent anew' };
  }

  /** handle_response and, for the way from here on, ip_vs_route_me_harder, net/netfilter/ipvs/ip_vs_core.c. */
  #translateBack(hook: Hook, packet: Packet): StationResult {
    if (!packet.ipvsSource) return ACCEPTED;
    this.#keepOut(packet);
    packet.translate(packet.ipvsSource);
    return { kind: 'accept', isRerouted: hook !== 'input' && this.#reader.reroutesAnswers };
  }

  /** ip_vs_notrack, <net/ip_vs.h>: it meets no station of type nat any more. What connection tracking takes for invalid stays that. */
  #keepOut(packet: Packet): void {
    if (!this.#reader.isTracked && packet.connection !== undefined) packet.connection = 'untracked';
  }

  /** What of a virtual server is not as this agent makes it, and not simulated, in words. */
  #strangeness({ flags, key }: VirtualServer, all: readonly LimitedDestination[]): string | undefined {
    const name = describe(key);
    if (this.#reader.isDropping) return 'which packets net.ipv4.vs.drop_packet drops';
    if ((flags & IP_VS_SVC_F_ONEPACKET) !== 0)
      return `what answers ${name} gets, whose datagrams have no connections (ops)`;
    const other = all.find(({ forwarding }) => forwarding !== undefined);
    if (other) return `how ${formatIpPort(other.address, other.port)} gets packets of ${name}: not by translation`;
    return undefined;
  }

  /**
   * The destination that a server with persistence takes for a client it knows, as ip_vs_sched_persist and ip_vs_check_template
   * (net/netfilter/ipvs) find it; undefined: a scheduler decides.
   */
  #rememberedFor(server: VirtualServer, packet: Packet): Destination | undefined {
    const { source } = packet.ends;
    if (server.persistenceSeconds === 0 || !source.isKnown) return undefined;
    const { key } = server;
    this.#remembered ??= this.#reader.listRemembered();
    const { persistenceMask: mask } = server;
    const client = ipFromBytes(mask ? source.bytes.map((byte, at) => byte & mask[at]!) : source.bytes);
    const found = this.#remembered.find((one) => ipEquals(one.client, client) && isOf(one, key));
    const to =
      found &&
      this.#destinationsOf(server).find(
        // Of a mark, or of every port: that of the destination counts.
        ({ address, port }) => ipEquals(address, found.server) && (found.serverPort === 0 || found.serverPort === port),
      );
    return to && (to.weight > 0 || !this.#reader.forgetsDrained) ? to : undefined;
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

  #destinationsOf(server: VirtualServer): readonly LimitedDestination[] {
    const known = this.#destinations.get(server) ?? this.#reader.listDestinations(server.key);
    this.#destinations.set(server, known);
    return known;
  }
}

/** What decides whether a destination that cannot be used, or not by all, has clients refused, in words; undefined: nothing. */
function refusedByFew(
  { key, scheduler, flags }: VirtualServer,
  all: readonly LimitedDestination[],
): string | undefined {
  const name = describe(key);
  const limited = all.find(({ connectionLimit }) => connectionLimit !== undefined);
  if (limited) {
    const { address, port, connectionLimit } = limited;
    return `whether ${formatIpPort(address, port)} has the ${connectionLimit} connections that ${name} allows it`;
  }
  if (!BY_ADDRESS.has(scheduler) || (flags & IP_VS_SVC_F_SCHED_MH_FALLBACK) !== 0) return undefined;
  if (all.every(({ weight }) => weight > 0)) return undefined;
  return `whom scheduler ${scheduler} of ${name} refuses, as one of its destinations has weight 0`;
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

/**
 * Whether a client is remembered for this server. Of a mark the kernel writes the mark in place of the address, whatever the protocol;
 * of the port of FTP none, as other ports belong to it (ip_vs_sched_persist, net/netfilter/ipvs/ip_vs_core.c).
 */
function isOf({ protocol, virtual, virtualPort }: IpvsConnection, key: VirtualServerKey): boolean {
  if (key.kind === 'mark') return protocol === 0 && readBe32(virtual.bytes, 0) === key.mark;
  return (
    protocol === key.protocol &&
    ipEquals(virtual, key.address) &&
    virtualPort === (key.port === FTP_PORT ? 0 : key.port)
  );
}

function describe(key: VirtualServerKey): string {
  if (key.kind === 'mark') return `mark 0x${key.mark.toString(16)}`;
  return `${formatIpPort(key.address, key.port)}/${protocolText(key.protocol)}`;
}

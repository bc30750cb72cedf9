import { addressBits, type IpAddress, type IpFamily } from '../../core/index.ts';
import { KnownBytes } from './known-bytes.ts';

/** An interface as rules see it. */
export interface Interface {
  readonly index: number;
  readonly name: string;
}

/** What connection tracking knows of the flow a packet belongs to. */
export interface Connection {
  readonly state: 'new' | 'established' | 'related';
  readonly direction: 'original' | 'reply';
  /** Source and destination as the flow began, before any translation. */
  readonly original: Ends;
  /** enum ip_conntrack_status, <linux/netfilter/nf_conntrack_common.h>. */
  status: number;
  /** Host byte order. */
  mark: KnownBytes;
  /** What later packets of the original direction are translated to. @default nothing */
  readonly translated?: Partial<Ends> | undefined;
}

/** Both ends of a flow: addresses and ports in network byte order. */
export interface Ends {
  readonly source: KnownBytes;
  readonly destination: KnownBytes;
  readonly sourcePort: KnownBytes;
  readonly destinationPort: KnownBytes;
}

/** Protocols of packets that are walked, by their number (<linux/in.h>) and as the save programs of iptables name them. */
export const PROTOCOLS = { tcp: 6, udp: 17, sctp: 132, icmp: 1, 'ipv6-icmp': 58 } as const;

/** Headers in front of the ports do not count: the offsets are those of <linux/ip.h> and <linux/ipv6.h>. */
const HEADER = {
  IPv4: { length: 20, source: 12, destination: 16 },
  IPv6: { length: 40, source: 8, destination: 24 },
} as const;

/** `frag_off` of <linux/ip.h>: no packet of these is a fragment, and some may not become any. */
const FRAGMENT_AT = 6;
const WHOLE = KnownBytes.partly(Uint8Array.of(0, 0), Uint8Array.of(0xbf, 0xff));

/** So many hops hosts begin with (IPDEFTTL, <linux/ip.h>): enough for any way. */
export const ENOUGH_HOPS = 64;
/** Where in the headers what becomes of a packet does not hang on: offsets of <linux/ip.h> and <linux/ipv6.h>. */
export const HEADER_FIELDS = {
  IPv4: { trafficClass: [1], hops: 8 },
  IPv6: { trafficClass: [0, 1], hops: 7 },
} as const;

/** As much of the transport header as rules look at: all of TCP's without options. */
const TRANSPORT_LENGTH = 20;
const TCP_FLAGS = 13;
/**
 * Those of what makes a connection: bits of byte 13, <linux/tcp.h>. Data that is pushed is all it needs once it is agreed to; what only
 * acknowledges may be lost, as data does that too.
 */
export const TCP_HANDSHAKE = { first: 0x02, answer: 0x12, agreed: 0x10, data: 0x18 } as const;
/** Type and code: ICMP_DEST_UNREACH with ICMP_FRAG_NEEDED (<linux/icmp.h>), ICMPV6_PKT_TOOBIG (<linux/icmpv6.h>). */
const TOO_BIG = { IPv4: [3, 4], IPv6: [2, 0] } as const;

/** NDISC_*, <net/ndisc.h>. */
const NEIGHBOUR_TYPES = { solicitation: 135, advertisement: 136 } as const;
const [HOPS_AT, NEIGHBOUR_HOPS] = [7, 255];

/** From here on are ports that sockets get which ask for none, by default (net.ipv4.ip_local_port_range). */
export const GIVEN_PORTS = 0x8000;
/** Of those the highest bit is known. */
const GIVEN = KnownBytes.partly(Uint8Array.of(0x80, 0), Uint8Array.of(0x80, 0));

/** The first packet of a flow, as somebody sends it. */
export interface FirstPacket {
  readonly protocol: 'tcp' | 'udp' | 'sctp';
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly destinationPort: number;
  /** `given`: one that the kernel of the sender gives connections, by its own settings (GIVEN_PORTS). @default any: not known */
  readonly sourcePort?: number | 'given' | undefined;
  /** Of TCP. @default those of the first packet: SYN */
  readonly tcpFlags?: number | undefined;
}

/** What a router tells a sender whose packet does not fit: ICMP "fragmentation needed", ICMPv6 "packet too big". */
export interface TooBig {
  readonly source: IpAddress;
  readonly destination: IpAddress;
}

/** What hosts of IPv6 ask and tell each other on a link to find who has an address: ICMPv6 with 255 hops left (RFC 4861). */
export interface NeighbourMessage {
  readonly kind: keyof typeof NEIGHBOUR_TYPES;
  /** Undefined: not known. */
  readonly source: IpAddress | undefined;
  readonly destination: IpAddress;
}

/**
 * A packet on its way through the rules, which change it. Of its headers only what the question says is known: not the
 * length, the time to live, or the sequence number.
 */
export class Packet {
  readonly family: IpFamily;
  /** IPPROTO_*. */
  readonly protocol: number;
  network: KnownBytes;
  transport: KnownBytes;
  /** Host byte order. A packet that enters a namespace has none. */
  mark = KnownBytes.of(new Uint8Array(4));
  /** Undefined for what this host sends. */
  iif: Interface | undefined;
  /** Whether rules see `iif`, or perhaps none at all. */
  isIifSeen = true;
  /** Undefined until it is routed. */
  oif: Interface | undefined;
  /** Undefined before connection tracking has seen it. */
  connection: Connection | 'untracked' | undefined;
  /** The flow that connection tracking finds for it, unless a rule keeps it out. @default none: it begins one */
  flow: Connection | undefined;
  /** The source that IPVS gives it, as it answers one of its connections. @default it does not */
  ipvsSource: Pick<Ends, 'source' | 'sourcePort'> | undefined;
  /** The destination that IPVS gives it, as it belongs to one of its connections. @default it begins one, if there is a server for it */
  ipvsDestination: Pick<Ends, 'destination' | 'destinationPort'> | undefined;
  /** Connection tracking finds no flow for it and begins none (`ct state invalid`): it is outside of the window of its own. */
  isInvalid = false;
  /** Sets and lists that rules of others have changed on its way, by names that differ. */
  readonly changedSets = new Set<string>();
  /** The same packet, sent and dropped before: what that has changed this one finds. @default it is the first */
  sentBefore: Packet | undefined;

  /** @throws RangeError when source and destination are of different families */
  constructor(first: FirstPacket | TooBig | NeighbourMessage) {
    const { source, destination } = first;
    if (source && source.family !== destination.family)
      throw new RangeError('source and destination are of different families');
    this.family = destination.family;
    this.protocol = PROTOCOLS[protocolOf(first)];
    this.network = this.#header(source, destination);
    this.transport = KnownBytes.unknown(TRANSPORT_LENGTH);
    if ('kind' in first) {
      this.transport = this.transport.with(0, KnownBytes.of(Uint8Array.of(NEIGHBOUR_TYPES[first.kind], 0)));
      this.network = this.network.with(HOPS_AT, KnownBytes.of(Uint8Array.of(NEIGHBOUR_HOPS)));
      return;
    }
    if (!('protocol' in first)) {
      this.transport = this.transport.with(0, KnownBytes.of(Uint8Array.from(TOO_BIG[this.family])));
      return;
    }
    const { protocol, sourcePort, destinationPort } = first;
    this.transport = this.transport.with(2, port(destinationPort));
    if (sourcePort !== undefined)
      this.transport = this.transport.with(0, sourcePort === 'given' ? GIVEN : port(sourcePort));
    if (protocol !== 'tcp') return;
    const { tcpFlags = TCP_HANDSHAKE.first } = first;
    this.transport = this.transport.with(TCP_FLAGS, KnownBytes.of(Uint8Array.of(tcpFlags)));
  }

  /**
   * PACKET_HOST (<linux/if_packet.h>) of what is for one host: all others are dropped on their way, and frames of a
   * bridge are shown to rules as if they were for this one (setup_pre_routing, net/bridge/br_netfilter_hooks.c). What
   * is for a group is sent as the former.
   */
  get linkType(): KnownBytes {
    const [isGroup, mask] = this.family === 'IPv4' ? [0xe0, 0xf0] : [0xff, 0xff];
    const first = this.ends.destination.slice(0, 1).masked(Uint8Array.of(mask), Uint8Array.of(0));
    const isForOne = first.equals(Uint8Array.of(isGroup)) === false;
    return isForOne ? KnownBytes.of(Uint8Array.of(0)) : KnownBytes.unknown(1);
  }

  /** Of what has one: no socket sends from port 0, so that rules that ask for it (tcpflags of shorewall) are for what somebody forges. */
  get sourcePort(): KnownBytes {
    const port = this.transport.slice(0, 2);
    const hasOne = this.protocol !== PROTOCOLS.icmp && this.protocol !== PROTOCOLS['ipv6-icmp'];
    return hasOne && !port.isKnown ? port.notZero() : port;
  }

  get ends(): Ends {
    const { source, destination } = HEADER[this.family];
    const length = addressBits(this.family) / 8;
    return {
      source: this.network.slice(source, length),
      destination: this.network.slice(destination, length),
      sourcePort: this.sourcePort,
      destinationPort: this.transport.slice(2, 2),
    };
  }

  /** All that rules can see of it and change: packets of one question with the same state fare alike. */
  get state(): string {
    const { connection } = this;
    const tracked =
      connection === undefined || connection === 'untracked'
        ? connection
        : [connection.state, connection.direction, connection.status, connection.mark.text].join();
    const { network, transport, mark, iif, oif, changedSets } = this;
    return [network.text, transport.text, mark.text, iif?.index, oif?.index, tracked, ...changedSets].join();
  }

  /** Translates some of its ends. */
  translate(ends: { readonly [End in keyof Ends]?: Ends[End] | undefined }): void {
    const header = HEADER[this.family];
    if (ends.source) this.network = this.network.with(header.source, ends.source);
    if (ends.destination) this.network = this.network.with(header.destination, ends.destination);
    if (ends.sourcePort) this.transport = this.transport.with(0, ends.sourcePort);
    if (ends.destinationPort) this.transport = this.transport.with(2, ends.destinationPort);
  }

  #header(source: IpAddress | undefined, destination: IpAddress): KnownBytes {
    const { length, ...at } = HEADER[this.family];
    const [versionAt, version, protocolAt] = this.family === 'IPv4' ? [0, 0x45, 9] : [0, 0x60, 6];
    const unknown = KnownBytes.unknown(length);
    return (this.family === 'IPv4' ? unknown.with(FRAGMENT_AT, WHOLE) : unknown)
      .with(versionAt, KnownBytes.of(Uint8Array.of(version)))
      .with(protocolAt, KnownBytes.of(Uint8Array.of(this.protocol)))
      .with(at.source, source ? KnownBytes.of(source.bytes) : KnownBytes.unknown(destination.bytes.length))
      .with(at.destination, KnownBytes.of(destination.bytes));
  }
}

function protocolOf(first: FirstPacket | TooBig | NeighbourMessage): keyof typeof PROTOCOLS {
  if ('protocol' in first) return first.protocol;
  return first.destination.family === 'IPv4' ? 'icmp' : 'ipv6-icmp';
}

/** A port in network byte order. */
function port(number: number): KnownBytes {
  return KnownBytes.of(Uint8Array.of(number >> 8, number & 0xff));
}

import { type Expression, hostOrder32, interfaceName } from '../../netlink/nftables/index.ts';
import { RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/rtnetlink.ts';
import { type Interface, KnownBytes, type Packet } from '../packet/index.ts';
import type { Host } from '../walk/index.ts';

type Of<K extends Expression['kind']> = Extract<Expression, { kind: K }>;

/** What an expression loads; 'nothing' where the kernel ends the rule because there is nothing to load. */
type Loaded = KnownBytes | 'nothing';

/** <linux/if_ether.h>, in network byte order. */
const ETHERTYPE = { IPv4: Uint8Array.of(0x08, 0x00), IPv6: Uint8Array.of(0x86, 0xdd) };
/** <linux/netfilter.h>. */
const NFPROTO = { IPv4: 2, IPv6: 10 };
/** NF_CT_STATE_BIT() and its two companions, <net/netfilter/nf_conntrack.h>. */
const CT_STATE = { invalid: 1 << 0, established: 1 << 1, related: 1 << 2, new: 1 << 3, untracked: 1 << 6 };
/** Since Linux 2.6 a name is at most 15 bytes and a NUL. */
const NAME_LENGTH = 16;

/** How long what is not known is; the kernel's lengths of the keys rules use. */
const META_LENGTH: Partial<Record<Of<'meta'>['key'], number>> = {
  protocol: 2,
  nfproto: 1,
  l4proto: 1,
  nftrace: 1,
};

/** @returns the bytes of a header; of those behind what is known of it nothing */
export function loadPayload({ base, offset, length }: Of<'payload'>, packet: Packet): Loaded {
  if (base === 'link') return KnownBytes.unknown(length);
  if (base === 'transport' && offset === 0 && length === 2) return packet.sourcePort;
  return packet[base].slice(offset, length);
}

/** nft_meta_get_eval, net/netfilter/nft_meta.c. */
export function loadMeta({ key }: Of<'meta'>, packet: Packet): Loaded {
  switch (key) {
    case 'mark':
      return packet.mark;
    case 'pkttype':
      return packet.linkType;
    case 'l4proto':
      return KnownBytes.of(Uint8Array.of(packet.protocol));
    case 'nfproto':
      return KnownBytes.of(Uint8Array.of(NFPROTO[packet.family]));
    case 'protocol':
      return KnownBytes.of(ETHERTYPE[packet.family]);
    case 'iif':
      return packet.isIifSeen ? indexOf(packet.iif) : KnownBytes.unknown(4);
    case 'oif':
      return indexOf(packet.oif);
    case 'iifname':
      return packet.isIifSeen ? nameOf(packet.iif) : KnownBytes.unknown(NAME_LENGTH);
    case 'oifname':
      return nameOf(packet.oif);
    default:
      return KnownBytes.unknown(META_LENGTH[key] ?? 4);
  }
}

/** An interface that is not there has the index 0. */
function indexOf(of: Interface | undefined): KnownBytes {
  return KnownBytes.of(hostOrder32(of?.index ?? 0));
}

/** An interface that is not there has an empty name. */
function nameOf(of: Interface | undefined): KnownBytes {
  return KnownBytes.of(of ? interfaceName(of.name) : new Uint8Array(NAME_LENGTH));
}

/** nft_ct_get_eval, net/netfilter/nft_ct.c. */
export function loadCt({ key, direction }: Of<'ct'>, { connection }: Packet): Loaded {
  if (key === 'state') return KnownBytes.of(hostOrder32(CT_STATE[stateOf(connection)]));
  if (connection === undefined || connection === 'untracked') return 'nothing';
  const { original } = connection;
  switch (key) {
    case 'status':
      return KnownBytes.of(hostOrder32(connection.status));
    case 'mark':
      return connection.mark;
    case 'direction':
      return KnownBytes.of(Uint8Array.of(connection.direction === 'original' ? 0 : 1));
    case 'saddr-ip':
    case 'saddr-ip6':
      return direction === 'original' ? original.source : KnownBytes.unknown(original.source.length);
    case 'daddr-ip':
    case 'daddr-ip6':
      return direction === 'original' ? original.destination : KnownBytes.unknown(original.source.length);
    case 'proto-src':
      return direction === 'original' ? original.sourcePort : KnownBytes.unknown(2);
    case 'proto-dst':
      return direction === 'original' ? original.destinationPort : KnownBytes.unknown(2);
    default:
      return KnownBytes.unknown(CT_LENGTH[key] ?? 4);
  }
}

const CT_LENGTH: Partial<Record<Of<'ct'>['key'], number>> = {
  l3proto: 1,
  protocol: 1,
  zone: 2,
  helper: 16,
  labels: 16,
  packets: 8,
  bytes: 8,
  avgpkt: 8,
};

function stateOf(connection: Packet['connection']): keyof typeof CT_STATE {
  if (connection === undefined) return 'invalid';
  return connection === 'untracked' ? 'untracked' : connection.state;
}

/** nft_fib4_eval, net/ipv4/netfilter/nft_fib_ipv4.c, for what the host can be asked. */
export function loadFib(expression: Of<'fib'>, packet: Packet, host: Host): Loaded {
  const { result, flags, present } = expression;
  const which = flags.includes('saddr') ? 'source' : 'destination';
  if (result === 'type') {
    const on = flags.includes('iif') ? packet.iif : flags.includes('oif') ? packet.oif : undefined;
    const type = host.addressType(packet.ends[which], on);
    return type === undefined ? KnownBytes.unknown(4) : KnownBytes.of(hostOrder32(type));
  }
  const found = flags.includes('oif') ? undefined : wayBy(packet, which, flags.includes('mark'), host);
  const length = result === 'oifname' ? NAME_LENGTH : 4;
  if (found === undefined) return KnownBytes.unknown(present ? 4 : length);
  // With `iif` the route must lead out by the interface the packet came in by: only then is there an answer.
  const wanted = flags.includes('iif') ? packet.iif : undefined;
  const answer = found === 'none' || (wanted && wanted.index !== found.index) ? undefined : found;
  if (present) return KnownBytes.of(hostOrder32(answer ? 1 : 0));
  return result === 'oifname' ? nameOf(answer) : KnownBytes.of(hostOrder32(answer?.index ?? 0));
}

/** Where the route of an address leads that is no host's own, of a group or of all: of those there is no answer (nft_fib4_eval). */
function wayBy(
  packet: Packet,
  which: 'source' | 'destination',
  byMark: boolean,
  host: Host,
): Interface | 'none' | undefined {
  const { iif, oif, connection, mark } = packet;
  // What comes in by the loopback interface would leave by it, whatever its addresses (nft_fib_can_skip, <net/netfilter/nft_fib.h>).
  if (oif === undefined && iif?.name === 'lo') return iif;
  const type = host.addressType(packet.ends[which]);
  // In hook input so does what a socket is found for, by the interface it came in by.
  const mayHaveSocket = which === 'destination' && typeof connection === 'object' && connection.state !== 'new';
  if (type === undefined || (type === RTN_LOCAL && mayHaveSocket)) return undefined;
  if (type !== RTN_UNICAST) return 'none';
  if (!byMark && mark.equals(new Uint8Array(4)) !== true) return undefined;
  return host.interfaceTo(packet, which);
}

import {
  addressBits,
  type Cidr,
  IP_FAMILIES,
  IP_PROTOCOLS,
  type IpAddress,
  type IpFamily,
  type IpProtocol,
  ipFromBytes,
} from '../../core/index.ts';
import { familyNumber, ipFamilyOf } from '../address-family.ts';
import { encodeBody } from '../attribute-set.ts';
import { Netlink } from '../netlink.ts';
import {
  IDIAG_SRC,
  INET_DIAG,
  inet_diag_msg,
  inet_diag_req_v2,
  NETLINK_SOCK_DIAG,
  SOCK_DIAG_BY_FAMILY,
  sk_meminfo,
  TCPF_CLOSE,
  TCPF_CLOSE_WAIT,
  TCPF_ESTABLISHED,
  TCPF_FIN_WAIT1,
  TCPF_FIN_WAIT2,
  TCPF_LISTEN,
  TCPF_SYN_RECV,
  TCPF_SYN_SENT,
  TCPM_ADDR,
  tcp_diag_md5sig,
  WITH_INFO,
  WITH_SKMEMINFO,
} from '../uapi/inet-diag.ts';
import { closing } from '../with-netlink.ts';

/** A socket that takes what comes to its port. */
export interface Listener {
  readonly port: number;
  /** The zero address: all of them. Of IPv4 also where an IPv6 socket is bound to one (`::ffff:10.0.0.1`), as Java does. */
  readonly address: IpAddress;
  /** It is an IPv6 socket that takes IPv4 as well: bound to `::` without IPV6_V6ONLY. */
  readonly dual: boolean;
  /** The number of the only interface that it takes anything from (SO_BINDTODEVICE). @default all of them */
  readonly boundTo?: number | undefined;
  /**
   * TCP: connections nobody has accepted yet, and how many may wait. UDP: bytes nobody has read yet with what keeping
   * them costs, and how many may wait.
   */
  readonly queued: number;
  readonly queueLimit: number;
  /** TCP: from whom it takes only what is signed (TCP-MD5, RFC 2385); told with CAP_NET_ADMIN alone. @default nobody */
  readonly signedFrom?: readonly Cidr[] | undefined;
  /** The mark of what it sends, its answers included (SO_MARK); told with CAP_NET_ADMIN alone. @default none */
  readonly mark?: number | undefined;
  /** The number of the cgroup (version 2) in which it was made, eight bytes in host byte order. @default not told */
  readonly cgroup?: Uint8Array | undefined;
  /** By which the descriptors of processes name it: `socket:[4711]` in /proc/PID/fd. */
  readonly inode: number;
}

/** `::ffff:0:0/96` */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
/** Of sockets that a process may hold and that may have somebody to talk to: of UDP also those that are not connected. */
const IN_USE = {
  TCP: TCPF_SYN_SENT | TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT,
  UDP: TCPF_ESTABLISHED | TCPF_CLOSE,
} as const;
const EXTENSIONS = { TCP: WITH_INFO, UDP: WITH_SKMEMINFO, SCTP: 0 } as const;

/**
 * Runs `fn` with a conversation about the sockets of the calling thread's namespace (`inNetns` for another), closed afterwards.
 * NODEPLANE_NETLINK_DEBUG shows no keys of it.
 *
 * @throws ERR_NETLINK_SOCKET; what `fn` throws
 */
export function withSockDiag<T>(fn: (netlink: Netlink) => T): T {
  return closing(Netlink.open(NETLINK_SOCK_DIAG, { secret: true }), fn);
}

/**
 * The sockets of the conversation's namespace that listen (TCP, SCTP), or are bound and not connected (UDP), in both families.
 *
 * @param netlink see `withSockDiag`
 * @throws KernelError: ENOENT where the kernel cannot list sockets of the protocol
 */
export function listListeners(netlink: Netlink, protocol: IpProtocol): Listener[] {
  const states = protocol === 'UDP' ? TCPF_CLOSE : TCPF_LISTEN;
  return IP_FAMILIES.flatMap((family) =>
    dumpSockets(netlink, { protocol, family, states, which: 'that listen' }).map((payload) =>
      decodeListener(payload, family),
    ),
  );
}

/**
 * How many connections of TCP to a port are being opened: those that were answered and not yet heard of again, which
 * wait at the socket that listens (struct request_sock, told as TCP_SYN_RECV).
 *
 * @param netlink see `withSockDiag`
 * @throws KernelError
 */
export function countBeingOpened(netlink: Netlink, port: number): number {
  const some = { protocol: 'TCP', states: TCPF_SYN_RECV, which: 'that are being opened' } as const;
  const all = IP_FAMILIES.flatMap((family) => dumpSockets(netlink, { family, ...some }));
  return all.filter((payload) => inet_diag_msg.decode(payload).idiag_sport === port).length;
}

/**
 * From which ports sockets send to one, or may: those of UDP that are not connected send to any.
 *
 * @param netlink see `withSockDiag`
 * @throws KernelError
 */
export function listSendingPorts(netlink: Netlink, protocol: 'TCP' | 'UDP', to: number): ReadonlySet<number> {
  const some = { protocol, states: IN_USE[protocol], which: `that send to port ${to}` };
  const all = IP_FAMILIES.flatMap((family) => dumpSockets(netlink, { family, ...some }));
  const sending = all
    .map((payload) => inet_diag_msg.decode(payload))
    .filter((one) => [0, to].includes(one.idiag_dport));
  return new Set(sending.map(({ idiag_sport }) => idiag_sport));
}

/** Which sockets to list. */
interface Listing {
  readonly protocol: IpProtocol;
  readonly family: IpFamily;
  /** As bits. */
  readonly states: number;
  /** In words. */
  readonly which: string;
}

function dumpSockets(netlink: Netlink, { protocol, family, states, which }: Listing): readonly Uint8Array[] {
  const request = {
    sdiag_family: familyNumber(family),
    sdiag_protocol: IP_PROTOCOLS[protocol],
    idiag_ext: EXTENSIONS[protocol],
    idiag_states: states,
  };
  return netlink.dump({
    type: SOCK_DIAG_BY_FAMILY,
    flags: 0,
    operation: 'SOCK_DIAG_BY_FAMILY',
    object: `${protocol} sockets of ${family} ${which}`,
    payload: encodeBody(inet_diag_req_v2, request, INET_DIAG, {}),
  });
}

function decodeListener(payload: Uint8Array, family: IpFamily): Listener {
  const { idiag_sport, idiag_if, idiag_rqueue, idiag_wqueue, idiag_inode } = inet_diag_msg.decode(payload);
  const attributes = INET_DIAG.decode(payload, inet_diag_msg.size);
  const {
    INET_DIAG_SKV6ONLY,
    INET_DIAG_SKMEMINFO: memory,
    INET_DIAG_MARK: mark = 0,
    INET_DIAG_MD5SIG: keys,
    INET_DIAG_CGROUP_ID: cgroup,
  } = attributes;
  const address = unmapped(payload.subarray(IDIAG_SRC, IDIAG_SRC + addressBits(family) / 8));
  return {
    port: idiag_sport,
    address,
    dual: address.family === 'IPv6' && INET_DIAG_SKV6ONLY === 0 && address.bytes.every((byte) => byte === 0),
    ...(idiag_if !== 0 && { boundTo: idiag_if }),
    ...(memory ? queueIn(memory) : { queued: idiag_rqueue, queueLimit: idiag_wqueue }),
    ...(keys && { signedFrom: peersOf(keys) }),
    ...(mark !== 0 && { mark }),
    ...(cgroup && { cgroup: cgroup.slice() }),
    inode: idiag_inode,
  };
}

function queueIn(memory: Uint8Array): Pick<Listener, 'queued' | 'queueLimit'> {
  const { rmem_alloc, rcvbuf } = sk_meminfo.decode(memory);
  return { queued: rmem_alloc, queueLimit: rcvbuf };
}

/** Of keys for addresses of IPv4 at a socket of IPv6 the family is that of IPv4 (tcp_v6_parse_md5_keys, net/ipv6/tcp_ipv6.c). */
function peersOf(keys: Uint8Array): readonly Cidr[] {
  return Array.from({ length: Math.floor(keys.length / tcp_diag_md5sig.size) }, (_, nth) => {
    const at = nth * tcp_diag_md5sig.size;
    const { tcpm_family, tcpm_prefixlen } = tcp_diag_md5sig.decode(keys, at);
    const size = addressBits(ipFamilyOf(tcpm_family) ?? 'IPv6') / 8;
    // A copy: the message has the keys beside it.
    const address = ipFromBytes(keys.slice(at + TCPM_ADDR, at + TCPM_ADDR + size));
    return { address, prefixLength: tcpm_prefixlen };
  });
}

/** Sockets of IPv6 that are bound to addresses of IPv4 take nothing else (RFC 4291, 2.5.5.2). */
function unmapped(bytes: Uint8Array): IpAddress {
  const isMapped = bytes.length === 16 && MAPPED.every((byte, index) => bytes[index] === byte);
  return ipFromBytes(isMapped ? bytes.subarray(MAPPED.length) : bytes);
}

import { addressBits, type IpAddress, type IpFamily, ipFromBytes } from '../../core/index.ts';
import { familyNumber } from '../address-family.ts';
import { encodeBody } from '../attribute-set.ts';
import type { Netlink } from '../netlink.ts';
import {
  IDIAG_SRC,
  INET_DIAG,
  inet_diag_msg,
  inet_diag_req_v2,
  SOCK_DIAG_BY_FAMILY,
  sk_meminfo,
  TCPF_CLOSE,
  TCPF_LISTEN,
  WITH_SKMEMINFO,
} from '../uapi/inet-diag.ts';

/** A socket that takes what comes to its port. */
export interface Listener {
  readonly port: number;
  /** The zero address: all of them. Of IPv4 also where an IPv6 socket is bound to one (`::ffff:10.0.0.1`), as Java does. */
  readonly address: IpAddress;
  /** It is an IPv6 socket that takes IPv4 as well: bound to `::` without IPV6_V6ONLY. */
  readonly dual: boolean;
  /** The number of the only interface that it takes anything from (SO_BINDTODEVICE). @default all of them */
  readonly boundTo?: number | undefined;
  /** TCP: connections nobody has accepted yet, and how many may wait. UDP: bytes nobody has read yet with what keeping them costs, and how many may wait. */
  readonly queued: number;
  readonly queueLimit: number;
  /** By which the descriptors of processes name it: `socket:[4711]` in /proc/PID/fd. */
  readonly inode: number;
}

/** `::ffff:0:0/96` */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
const IPPROTO = { TCP: 6, UDP: 17, SCTP: 132 } as const;

/**
 * The sockets of the conversation's namespace that listen (TCP, SCTP), or are bound and not connected (UDP), in both families.
 *
 * @param netlink a conversation of protocol NETLINK_SOCK_DIAG
 * @throws KernelError: ENOENT where the kernel cannot list sockets of the protocol
 */
export function listListeners(netlink: Netlink, protocol: keyof typeof IPPROTO): Listener[] {
  return (['IPv4', 'IPv6'] as const).flatMap((family) =>
    netlink
      .dump({
        type: SOCK_DIAG_BY_FAMILY,
        flags: 0,
        operation: 'SOCK_DIAG_BY_FAMILY',
        object: `${protocol} sockets of ${family} that listen`,
        payload: encodeBody(
          inet_diag_req_v2,
          {
            sdiag_family: familyNumber(family),
            sdiag_protocol: IPPROTO[protocol],
            idiag_ext: protocol === 'UDP' ? WITH_SKMEMINFO : 0,
            idiag_states: protocol === 'UDP' ? TCPF_CLOSE : TCPF_LISTEN,
          },
          INET_DIAG,
          {},
        ),
      })
      .map((payload) => decodeListener(payload, family)),
  );
}

function decodeListener(payload: Uint8Array, family: IpFamily): Listener {
  const { idiag_sport, idiag_if, idiag_rqueue, idiag_wqueue, idiag_inode } = inet_diag_msg.decode(payload);
  const { INET_DIAG_SKV6ONLY, INET_DIAG_SKMEMINFO: memory } = INET_DIAG.decode(payload, inet_diag_msg.size);
  const address = unmapped(payload.subarray(IDIAG_SRC, IDIAG_SRC + addressBits(family) / 8));
  return {
    port: idiag_sport,
    address,
    dual: address.family === 'IPv6' && INET_DIAG_SKV6ONLY === 0 && address.bytes.every((byte) => byte === 0),
    ...(idiag_if !== 0 && { boundTo: idiag_if }),
    ...(memory ? queueIn(memory) : { queued: idiag_rqueue, queueLimit: idiag_wqueue }),
    inode: idiag_inode,
  };
}

function queueIn(memory: Uint8Array): Pick<Listener, 'queued' | 'queueLimit'> {
  const { rmem_alloc, rcvbuf } = sk_meminfo.decode(memory);
  return { queued: rmem_alloc, queueLimit: rcvbuf };
}

/** Sockets of IPv6 that are bound to addresses of IPv4 take nothing else (RFC 4291, 2.5.5.2). */
function unmapped(bytes: Uint8Array): IpAddress {
  const isMapped = bytes.length === 16 && MAPPED.every((byte, index) => bytes[index] === byte);
  return ipFromBytes(isMapped ? bytes.subarray(MAPPED.length) : bytes);
}

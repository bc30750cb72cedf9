import { IP_PROTOCOLS, parseIp } from '../../../src/core/index.ts';
import { libc } from '../../../src/sys/index.ts';

// Node knows no SCTP, but libuv takes any stream socket of the Internet families for one of TCP's, and connecting, accepting,
// reading, writing and resetting are the same system calls: a socket made and bound here is given to node:net.
//
// Both ends of an association tell each other all addresses of their sockets (RFC 9260, 5.1.2). NAT does not translate
// those, the other end tries them out, and a host that hears of an association it does not know ends it. So a socket has
// one family, and on a host with several addresses of a family it has to be bound to one: that is true of all SCTP servers
// and clients of Services.

// linux/in.h, linux/in6.h, bits/socket.h
const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0x80000;
const IPPROTO_IP = 0;
const IP_RECVERR = 11;
const IPPROTO_IPV6 = 41;
const IPV6_RECVERR = 25;
const IPV6_V6ONLY = 26;
const SCTP_RTOINFO = 0;
const ON = new Uint8Array(Int32Array.of(1).buffer);
/** `struct sctp_rtoinfo { u32 assoc_id, initial, max, min }`, times in milliseconds. */
const REPEAT_SOON = new Uint8Array(Uint32Array.of(0, 200, 1000, 200).buffer);

/**
 * A descriptor to listen on or to connect with, bound to `ip` (`0.0.0.0` and `::` are all addresses of their family alone)
 * and `port` (0: one that is free). Throws KernelError, such as EPROTONOSUPPORT on a kernel without SCTP.
 */
export function sctpSocket(ip: string, port: number): number {
  const address = socketAddress(ip, port);
  const family = address.readUInt16LE(0);
  const fd = libc().socket(family, SOCK_STREAM | SOCK_CLOEXEC, IP_PROTOCOLS.SCTP);
  try {
    // An ICMP error, which is how a REJECT shows, only counts when it is asked for; and one that comes back before
    // connect(2) has returned, as in the lab, not before the next repetition, for which the kernel would wait 3 s.
    if (family === AF_INET) libc().setsockopt(fd, IPPROTO_IP, IP_RECVERR, ON);
    else for (const option of [IPV6_RECVERR, IPV6_V6ONLY]) libc().setsockopt(fd, IPPROTO_IPV6, option, ON);
    libc().setsockopt(fd, IP_PROTOCOLS.SCTP, SCTP_RTOINFO, REPEAT_SOON);
    libc().bind(fd, address);
    return fd;
  } catch (error) {
    libc().close(fd);
    throw error;
  }
}

/**
 * `struct sockaddr_in { u16 family; be16 port; u8 address[4]; u8 zero[8] }` or
 * `struct sockaddr_in6 { u16 family; be16 port; be32 flowinfo; u8 address[16]; u32 scope_id }`.
 */
function socketAddress(ip: string, port: number): Buffer {
  const { family, bytes } = parseIp(ip);
  const address = Buffer.alloc(family === 'IPv4' ? 16 : 28);
  address.writeUInt16LE(family === 'IPv4' ? AF_INET : AF_INET6, 0);
  address.writeUInt16BE(port, 2);
  address.set(bytes, family === 'IPv4' ? 4 : 8);
  return address;
}

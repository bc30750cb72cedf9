import { ByteWriter, errorText, KernelError, NodeplaneError } from '../core/index.ts';
import { libc, watchReadable } from '../sys/index.ts';
import { debuggable } from './debug.ts';
import type { GroupTransport } from './transport.ts';
import {
  AF_NETLINK,
  NETLINK_ADD_MEMBERSHIP,
  NETLINK_CAP_ACK,
  NETLINK_DROP_MEMBERSHIP,
  NETLINK_EXT_ACK,
  NETLINK_GET_STRICT_CHK,
  SOL_NETLINK,
  sockaddr_nl,
} from './uapi/netlink.ts';

// <sys/socket.h>
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const SOL_SOCKET = 1;
const SO_RCVTIMEO = 20;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const MSG_PEEK = 2;
const MSG_TRUNC = 0x20;
const MSG_DONTWAIT = 0x40;

/** How a socket is opened. */
export interface SocketOptions {
  /**
   * How long to wait for a datagram. The kernel works on a request inside send(2) and queues the answer before that
   * returns, so even a request that took long is answered at once. @default 5000
   */
  readonly timeoutMs?: number;
  /**
   * Limit of the send and of the receive queue in bytes; memory is only used while datagrams wait. A datagram of n
   * requests must fit the first, its n acknowledgements (about 1 KiB each, kernel bookkeeping included) the second.
   * Raised only for a caller with CAP_NET_ADMIN; others get the system's default. @default 8388608
   */
  readonly bufferBytes?: number;
  /**
   * Size of the first read buffer; it grows to the largest datagram met. The kernel makes parts of a listing as large as
   * the largest read so far, at most 32 KiB. @default 65536
   */
  readonly readBytes?: number;
  /** Multicast groups whose messages are wanted. @default none */
  readonly groups?: readonly number[];
  /** Which messages are taken in, as for `GroupTransport.attachFilter`. @default all */
  readonly filter?: Uint8Array;
  /** Messages hold keys: NODEPLANE_NETLINK_DEBUG shows neither their bytes nor the keys. @default false */
  readonly secret?: boolean;
}

/**
 * Opens a netlink socket in the network namespace of the calling thread, to which it stays bound.
 *
 * Extended acknowledgements are on, requests are not echoed in them, and GET requests are checked strictly, so that a
 * dump filter the kernel does not understand is refused instead of ignored. With NODEPLANE_NETLINK_DEBUG=1 what goes over it is
 * printed.
 *
 * @param protocol NETLINK_ROUTE, NETLINK_NETFILTER or NETLINK_GENERIC
 * @throws ERR_NETLINK_SOCKET when it cannot be opened
 */
export function openSocket(protocol: number, options: SocketOptions = {}): GroupTransport {
  const { timeoutMs = 5_000, bufferBytes = 8 << 20, readBytes = 64 << 10, groups = [], filter, secret } = options;
  const c = libc();
  const fd = attempt(`open a netlink socket of protocol ${protocol}`, () =>
    c.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol),
  );
  try {
    const portId = attempt(`set up a netlink socket of protocol ${protocol}`, () => {
      for (const option of [NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK]) {
        c.setsockopt(fd, SOL_NETLINK, option, int32(1));
      }
      for (const option of [SO_SNDBUFFORCE, SO_RCVBUFFORCE]) raiseLimit(fd, option, bufferBytes);
      c.setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, timeval(timeoutMs));
      const port = bindToOwnPort(fd);
      if (filter) c.attachFilter(fd, filter);
      for (const group of groups) c.setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, int32(group));
      return port;
    });
    return debuggable(socketTransport(fd, portId, timeoutMs, readBytes), protocol, secret);
  } catch (error) {
    c.close(fd);
    throw error;
  }
}

function socketTransport(fd: number, portId: number, timeoutMs: number, readBytes: number): GroupTransport {
  const c = libc();
  let buffer = new Uint8Array(readBytes);
  let open = true;
  let room = 0;
  const receiving = 'receive a netlink answer';
  const sending = (data: Uint8Array) => `send ${data.length} bytes over netlink`;
  /** Reads the next datagram, which stays in the queue while its length is looked at, and throws as recv(2) does. */
  const read = (flags: number): Uint8Array => {
    const length = c.recv(fd, buffer, MSG_PEEK | MSG_TRUNC | flags);
    if (length > buffer.length) buffer = new Uint8Array(2 ** Math.ceil(Math.log2(length)));
    return buffer.subarray(0, c.recv(fd, buffer, flags));
  };
  return {
    portId,
    send(data) {
      attempt(sending(data), () => c.send(fd, data, 0));
    },
    async sendAsync(data) {
      try {
        await c.sendAsync(fd, data, 0);
      } catch (error) {
        attempt(sending(data), () => {
          throw error;
        });
      }
    },
    makeRoom(bytes) {
      if (bytes <= room) return;
      attempt('enlarge the send queue of a netlink socket', () => raiseLimit(fd, SO_SNDBUFFORCE, bytes));
      room = bytes;
    },
    receiveWaiting() {
      try {
        return read(MSG_DONTWAIT);
      } catch (error) {
        const name = error instanceof KernelError ? error.errnoName : '';
        if (name === 'EAGAIN') return undefined;
        if (name === 'ENOBUFS') return 'overrun';
        return attempt(receiving, () => {
          throw error;
        });
      }
    },
    onReadable: (callback) => watchReadable(fd, callback),
    attachFilter: (program) => attempt('set the filter of a netlink socket', () => c.attachFilter(fd, program)),
    joinGroup: (group) =>
      attempt(`join multicast group ${group} of netlink`, () =>
        c.setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, int32(group)),
      ),
    leaveGroup: (group) =>
      attempt(`leave multicast group ${group} of netlink`, () =>
        c.setsockopt(fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, int32(group)),
      ),
    receive: () => attempt(receiving, () => read(0), timeoutMs),
    close() {
      if (open) c.close(fd);
      open = false;
    },
  };
}

/** Port ID 0 lets the kernel choose; it is asked back because answers carry it. */
function bindToOwnPort(fd: number): number {
  const address = new ByteWriter(sockaddr_nl.size);
  sockaddr_nl.encode(address, { nl_family: AF_NETLINK });
  libc().bind(fd, address.written());
  libc().getsockname(fd, address.written());
  return sockaddr_nl.decode(address.written()).nl_pid;
}

function raiseLimit(fd: number, option: number, bytes: number): void {
  try {
    libc().setsockopt(fd, SOL_SOCKET, option, int32(bytes));
  } catch (error) {
    // Without CAP_NET_ADMIN one can only look, for which the default is enough.
    if (!(error instanceof KernelError && error.errnoName === 'EPERM')) throw error;
  }
}

/** Runs a system call, turning its failure into one of the conversation. */
function attempt<T>(what: string, call: () => T, timeoutMs?: number): T {
  try {
    return call();
  } catch (cause) {
    const name = cause instanceof KernelError ? cause.errnoName : '';
    const found =
      name === 'EAGAIN'
        ? `none came within ${timeoutMs} ms`
        : name === 'ENOBUFS'
          ? 'the kernel dropped some because the receive queue was full (ENOBUFS); ask again with fewer requests at once'
          : errorText(cause);
    throw new NodeplaneError('ERR_NETLINK_SOCKET', `Cannot ${what}: ${found}`, { facts: { errno: name }, cause });
  }
}

function int32(value: number): Uint8Array {
  const writer = new ByteWriter(4);
  writer.u32(value);
  return writer.written();
}

/** struct timeval { long tv_sec; long tv_usec; } */
function timeval(milliseconds: number): Uint8Array {
  const bytes = Buffer.alloc(16);
  bytes.writeBigInt64LE(BigInt(Math.floor(milliseconds / 1000)), 0);
  bytes.writeBigInt64LE(BigInt((milliseconds % 1000) * 1000), 8);
  return bytes;
}

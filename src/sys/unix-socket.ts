import type { Socket } from 'node:net';
import { KernelError, NodeplaneError } from '../core/index.ts';
import { libc, type ReceivedMessage } from './libc.ts';

// What unix sockets can do and node:net cannot: tell who is on the other side, and receive descriptors. node:net must not
// read meanwhile (`pauseOnConnect`), because descriptors that it meets are lost.

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const POLLIN = 1;
const MSG_PEEK = 0x2;
const MSG_DONTWAIT = 0x40;

/** Who connected, as the kernel saw it at that moment. */
export interface PeerCredentials {
  /** 0 when the process is outside of our PID namespace. */
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

/**
 * The descriptor behind a socket of node:net, which stays node's. Node shows it nowhere but in the socket's handle.
 *
 * @throws ERR_FFI_UNAVAILABLE when the socket is closed, or this release of Node.js keeps it elsewhere
 */
export function descriptorOf(socket: Socket): number {
  const { _handle: handle } = socket as Socket & { readonly _handle?: { readonly fd?: unknown } | null };
  if (typeof handle?.fd === 'number' && handle.fd >= 0) return handle.fd;
  throw new NodeplaneError(
    'ERR_FFI_UNAVAILABLE',
    'Cannot find the descriptor of a socket: it is closed, or unlike those of known releases',
  );
}

/** SO_PEERCRED of a connected unix socket: struct ucred { pid_t pid; uid_t uid; gid_t gid; }. */
export function peerCredentials(fd: number): PeerCredentials {
  const ucred = Buffer.alloc(12);
  libc().getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ucred);
  return { pid: ucred.readInt32LE(0), uid: ucred.readUInt32LE(4), gid: ucred.readUInt32LE(8) };
}

/**
 * Receives what has come, with the descriptors sent along, which are the caller's to close.
 *
 * @returns undefined when nothing has come yet; length 0 at the end
 * @throws KernelError
 */
export function receiveWithDescriptors(fd: number, data: Uint8Array): ReceivedMessage | undefined {
  return unlessEmpty(() => libc().recvmsg(fd, data, MSG_DONTWAIT));
}

/** Waits, with the whole thread, until something has come or the other side has left; false after `timeoutMs`. */
export function waitForMessage(fd: number, timeoutMs: number): boolean {
  return libc().poll(fd, POLLIN, timeoutMs) !== 0;
}

/** Whether the other side has closed the connection and all it sent was read. Reads nothing. */
export function hasPeerLeft(fd: number): boolean {
  try {
    return unlessEmpty(() => libc().recv(fd, Buffer.alloc(1), MSG_PEEK | MSG_DONTWAIT)) === 0;
  } catch (error) {
    if (error instanceof KernelError && error.errnoName === 'ECONNRESET') return true;
    throw error;
  }
}

function unlessEmpty<T>(receive: () => T): T | undefined {
  try {
    return receive();
  } catch (error) {
    if (error instanceof KernelError && error.errnoName === 'EAGAIN') return undefined;
    throw error;
  }
}

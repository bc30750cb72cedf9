import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants as osConstants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KernelError, NodeplaneError } from '../core/index.ts';

/**
 * The C library, the only foreign code nodeplane calls, and this file the only place that knows the FFI.
 *
 * Every function returns what the C function returns, except that a failure (-1) throws a KernelError with errno; calls
 * interrupted by a signal (EINTR) are repeated. Buffers are passed as they are: byte order is the caller's business.
 */
export interface Libc {
  socket(domain: number, type: number, protocol: number): number;
  bind(fd: number, address: Uint8Array): void;
  getsockname(fd: number, address: Uint8Array): void;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array): void;
  /** Sends `data` as one datagram; returns the number of bytes taken. */
  send(fd: number, data: Uint8Array, flags: number): number;
  /** Receives one datagram into `data`; with MSG_TRUNC in `flags` returns its real length. */
  recv(fd: number, data: Uint8Array, flags: number): number;
  /** Waits for `events` on one descriptor; returns the events that hold, 0 after `timeoutMs`. */
  poll(fd: number, events: number, timeoutMs: number): number;
  open(path: string, flags: number, mode: number): number;
  close(fd: number): void;
  setns(fd: number, nstype: number): void;
  flock(fd: number, operation: number): void;
}

/** The part of koffi's native module we use. Its JavaScript wrapper costs 8 ms of start and adds nothing here. */
interface Koffi {
  load(path: string | null): { func(prototype: string): (...args: unknown[]) => number };
  errno(): number;
}

let loaded: Libc | undefined;

/** The C library, loaded at first use. Throws ERR_FFI_UNAVAILABLE when the native file is missing or does not fit. */
export function libc(): Libc {
  loaded ??= declare(loadKoffi());
  return loaded;
}

function declare(koffi: Koffi): Libc {
  const lib = koffi.load(null);
  const checked = (prototype: string) => {
    const name = /(\w+)\(/.exec(prototype)![1]!;
    const fn = lib.func(prototype);
    return (object: string, ...args: unknown[]): number => {
      for (;;) {
        const result = fn(...args);
        if (result !== -1) return result;
        const errno = koffi.errno();
        if (errno !== osConstants.errno.EINTR) throw new KernelError('ERR_SYSCALL', { operation: name, object, errno });
      }
    };
  };
  const socket = checked('int socket(int, int, int)');
  const bind = checked('int bind(int, const void *, uint32_t)');
  const getsockname = checked('int getsockname(int, void *, void *)');
  const setsockopt = checked('int setsockopt(int, int, int, const void *, uint32_t)');
  const send = checked('intptr_t send(int, const void *, size_t, int)');
  const recv = checked('intptr_t recv(int, void *, size_t, int)');
  const poll = checked('int poll(void *, unsigned long, int)');
  const open = checked('int open(const char *, int, uint32_t)');
  const close = checked('int close(int)');
  const setns = checked('int setns(int, int)');
  const flock = checked('int flock(int, int)');
  return {
    socket: (domain, type, protocol) => socket(`domain ${domain} protocol ${protocol}`, domain, type, protocol),
    bind: (fd, address) => void bind(`fd ${fd}`, fd, address, address.length),
    getsockname(fd, address) {
      const length = new Uint8Array(Uint32Array.of(address.length).buffer);
      getsockname(`fd ${fd}`, fd, address, length);
    },
    setsockopt: (fd, level, option, value) =>
      void setsockopt(`level ${level} option ${option}`, fd, level, option, value, value.length),
    send: (fd, data, flags) => send(`fd ${fd}`, fd, data, data.length, flags),
    recv: (fd, data, flags) => recv(`fd ${fd}`, fd, data, data.length, flags),
    poll(fd, events, timeoutMs) {
      // struct pollfd { int fd; short events; short revents; }
      const pollfd = Buffer.alloc(8);
      pollfd.writeInt32LE(fd, 0);
      pollfd.writeInt16LE(events, 4);
      return poll(`fd ${fd}`, pollfd, 1, timeoutMs) === 0 ? 0 : pollfd.readInt16LE(6);
    },
    open: (path, flags, mode) => open(path, path, flags, mode),
    close: (fd) => void close(`fd ${fd}`, fd),
    setns: (fd, nstype) => void setns(`fd ${fd}`, fd, nstype),
    flock: (fd, operation) => void flock(`fd ${fd}`, fd, operation),
  };
}

function loadKoffi(): Koffi {
  const tried: string[] = [];
  for (const path of nativeCandidates()) {
    if (!existsSync(path)) {
      tried.push(`${path}: not there`);
      continue;
    }
    const module = { exports: {} as Koffi };
    try {
      process.dlopen(module, path);
      return module.exports;
    } catch (error) {
      tried.push(`${path}: ${(error as Error).message}`);
    }
  }
  throw new NodeplaneError('ERR_FFI_UNAVAILABLE', `Cannot load the FFI library koffi.node; tried ${tried.join('; ')}`);
}

/** Beside the built program; else inside node_modules (running from source), glibc before musl. */
function* nativeCandidates(): Generator<string> {
  const here = dirname(fileURLToPath(import.meta.url));
  yield join(here, 'koffi.node');
  const platform = `${process.platform}-${process.arch}`;
  try {
    const packageJson = createRequire(import.meta.url).resolve(`@koromix/koffi-${platform}/package.json`);
    for (const libcName of ['linux', 'musl']) {
      yield join(dirname(packageJson), `${libcName}_${process.arch}`, 'koffi.node');
    }
  } catch {
    // Not installed: the candidates above are named in the error.
  }
}

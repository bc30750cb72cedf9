import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants as osConstants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KernelError, NodeplaneError } from '../core/index.ts';
import type { DescriptorLedger } from './descriptor-ledger.ts';

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
  /** Fills `value`, whose length is the length the option must have. */
  getsockopt(fd: number, level: number, option: number, value: Uint8Array): void;
  /** Has a socket take in only what a program of classic BPF (array of struct sock_filter, 8 bytes each) takes. */
  attachFilter(fd: number, program: Uint8Array): void;
  /** Sends `data` as one datagram; returns the number of bytes taken. */
  send(fd: number, data: Uint8Array, flags: number): number;
  /** Receives one datagram into `data`; with MSG_TRUNC in `flags` returns its real length. */
  recv(fd: number, data: Uint8Array, flags: number): number;
  /**
   * Receives into `data`, with up to sixteen descriptors that were sent along (SCM_RIGHTS). They are the caller's to close
   * and are not inherited by programs.
   */
  recvmsg(fd: number, data: Uint8Array, flags: number): ReceivedMessage;
  /** Waits for `events` on one descriptor; returns the events that hold, 0 after `timeoutMs`. */
  poll(fd: number, events: number, timeoutMs: number): number;
  /** A descriptor that is readable while the 64-bit number in it is not 0; writing 8 bytes adds to it. */
  eventfd(initial: number, flags: number): number;
  /** As `send` on a worker thread; `data` must not change meanwhile. */
  sendAsync(fd: number, data: Uint8Array, flags: number): Promise<number>;
  /**
   * Waits on a worker thread for `events` on any of the descriptors; tells those on which they, or an error, hold: none
   * after `timeoutMs`, with -1 waiting without end. It occupies one of the few threads (UV_THREADPOOL_SIZE) that long.
   */
  pollAsync(fds: readonly number[], events: number, timeoutMs: number): Promise<number[]>;
  open(path: string, flags: number, mode: number): number;
  /** Opens what a struct file_handle names in the file system of `mountFd` (open_by_handle_at(2)). Needs CAP_DAC_READ_SEARCH. */
  openByHandle(mountFd: number, handle: Uint8Array, flags: number): number;
  close(fd: number): void;
  setns(fd: number, nstype: number): void;
  flock(fd: number, operation: number): void;
  /** A request that reads and writes `argument`, whose length the request implies. */
  ioctl(fd: number, request: number, argument: Uint8Array): void;
  /**
   * A command of bpf(2), whose answer is written to `attributes` (union bpf_attr). ENOSYS where this architecture's
   * number is not known here.
   */
  bpf(command: number, attributes: Uint8Array): number;
  /** Changes a parameter of the allocator (malloc.h); false when this C library has none of them, or not this one. */
  mallopt(parameter: number, value: number): boolean;
  /** Gives free memory of the allocator back to the kernel (malloc.h); false when this C library does not know how. */
  mallocTrim(): boolean;
  /** Tells the kernel about a range of memory, whose addresses are multiples of the page size (madvise(2)). */
  madvise(address: bigint, length: bigint, advice: number): void;
  /** Where a buffer's bytes are, and stay. */
  address(data: Uint8Array): bigint;
}

/** What `recvmsg` received. */
export interface ReceivedMessage {
  /** Number of bytes; 0 at the end of the stream. */
  readonly length: number;
  readonly descriptors: readonly number[];
}

/** The part of koffi's native module we use. Its JavaScript wrapper costs 8 ms of start and adds nothing here. */
interface Koffi {
  /** With null: the program itself, to which the C library is linked. */
  load(path: string | null): KoffiLibrary;
  errno(): number;
  /** Of the memory behind it, which stays where it is. */
  address(buffer: Uint8Array): bigint;
}

interface KoffiLibrary {
  /** Throws when the library has no such function. */
  func(prototype: string): KoffiFunction;
}

interface KoffiFunction {
  (...args: unknown[]): number;
  /** Calls on a worker thread; the last argument is the callback, in which `errno` is that of the call. */
  async(...args: [...args: unknown[], callback: (error: Error | null, result: number) => void]): void;
}

let loaded: Libc | undefined;
let ledger: DescriptorLedger | undefined;

/**
 * From now on this thread notes each descriptor it opens here until it closes it, so that whoever ends the thread can close
 * what is left: descriptors are the process's, and ending a thread closes none.
 */
export function noteDescriptorsIn(noted: DescriptorLedger): void {
  ledger = noted;
}

function noted(fd: number): number {
  ledger?.note(fd);
  return fd;
}

/** The C library, loaded at first use. Throws ERR_FFI_UNAVAILABLE when the native file is missing or does not fit. */
export function libc(): Libc {
  loaded ??= declare(loadKoffi());
  return loaded;
}

/** Declares the functions by their C prototypes, and gives each the arguments it wants. */
function declare(koffi: Koffi): Libc {
  const lib = koffi.load(null);
  const checked = (prototype: string) => checkedCall(koffi, prototype, lib.func(prototype));
  const checkedAsync = (prototype: string) => checkedAsyncCall(koffi, prototype, lib.func(prototype));
  const socket = checked('int socket(int, int, int)');
  const bind = checked('int bind(int, const void *, uint32_t)');
  const getsockname = checked('int getsockname(int, void *, void *)');
  const setsockopt = checked('int setsockopt(int, int, int, const void *, uint32_t)');
  const getsockopt = checked('int getsockopt(int, int, int, void *, void *)');
  const send = checked('intptr_t send(int, const void *, size_t, int)');
  const recv = checked('intptr_t recv(int, void *, size_t, int)');
  const recvmsg = checked('intptr_t recvmsg(int, void *, int)');
  const poll = checked('int poll(void *, unsigned long, int)');
  const eventfd = checked('int eventfd(unsigned int, int)');
  const sendAsync = checkedAsync('intptr_t send(int, const void *, size_t, int)');
  const pollAsync = checkedAsync('int poll(void *, unsigned long, int)');
  const open = checked('int open(const char *, int, uint32_t)');
  // Linux has closed it also when a signal interrupted the call (close(2)); a second call would close somebody else's.
  const close = lib.func('int close(int)');
  const setns = checked('int setns(int, int)');
  const flock = checked('int flock(int, int)');
  const ioctl = checked('int ioctl(int, unsigned long, void *)');
  const syscall = checked('intptr_t syscall(intptr_t, int, void *, uint32_t)');
  const madvise = checked('int madvise(uintptr_t, size_t, int)');
  return {
    socket: (domain, type, protocol) => noted(socket(`domain ${domain} protocol ${protocol}`, domain, type, protocol)),
    bind: (fd, address) => void bind(`fd ${fd}`, fd, address, address.length),
    getsockname: (fd, address) => void getsockname(`fd ${fd}`, fd, address, socklen(address)),
    setsockopt: (fd, level, option, value) =>
      void setsockopt(`level ${level} option ${option}`, fd, level, option, value, value.length),
    getsockopt: (fd, level, option, value) =>
      void getsockopt(`level ${level} option ${option}`, fd, level, option, value, socklen(value)),
    attachFilter(fd, program) {
      const fprog = sockFprog(koffi, program);
      setsockopt('SO_ATTACH_FILTER', fd, SOL_SOCKET, SO_ATTACH_FILTER, fprog, fprog.length);
    },
    send: (fd, data, flags) => send(`fd ${fd}`, fd, data, data.length, flags),
    recv: (fd, data, flags) => recv(`fd ${fd}`, fd, data, data.length, flags),
    recvmsg(fd, data, flags) {
      const message = new MessageHeader(koffi, data);
      const length = recvmsg(`fd ${fd}`, fd, message.bytes, flags | MSG_CMSG_CLOEXEC);
      return { length, descriptors: message.descriptors() };
    },
    poll(fd, events, timeoutMs) {
      const pollfd = pollfdArray([fd], events);
      return poll(`fd ${fd}`, pollfd, 1, timeoutMs) === 0 ? 0 : returnedEvents(pollfd, 0);
    },
    eventfd: (initial, flags) => noted(eventfd('', initial, flags)),
    sendAsync: (fd, data, flags) => sendAsync(`fd ${fd}`, fd, data, data.length, flags),
    async pollAsync(fds, events, timeoutMs) {
      const pollfds = pollfdArray(fds, events);
      await pollAsync(`${fds.length} descriptors`, pollfds, fds.length, timeoutMs);
      return fds.filter((_, i) => returnedEvents(pollfds, i) !== 0);
    },
    open: (path, flags, mode) => noted(open(path, path, flags, mode)),
    // Looked up when it is called, which is seldom.
    openByHandle: (mountFd, handle, flags) =>
      noted(checked('int open_by_handle_at(int, void *, int)')(`fd ${mountFd}`, mountFd, handle, flags)),
    close(fd) {
      if (ledger && !ledger.forget(fd)) return;
      if (close(fd) === -1 && koffi.errno() !== osConstants.errno.EINTR) {
        throw new KernelError('ERR_SYSCALL', { operation: 'close', object: `fd ${fd}`, errno: koffi.errno() });
      }
    },
    setns: (fd, nstype) => void setns(`fd ${fd}`, fd, nstype),
    flock: (fd, operation) => void flock(`fd ${fd}`, fd, operation),
    ioctl: (fd, request, argument) => void ioctl(`fd ${fd} request 0x${request.toString(16)}`, fd, request, argument),
    bpf(command, attributes) {
      const number = BPF_SYSCALL[process.arch];
      const object = `bpf command ${command}`;
      if (number === undefined)
        throw new KernelError('ERR_SYSCALL', { operation: 'bpf', object, errno: osConstants.errno.ENOSYS });
      return syscall(object, number, command, attributes, attributes.length);
    },
    mallopt: (parameter, value) => functionOf(lib, 'int mallopt(int, int)')?.(parameter, value) === 1,
    mallocTrim: () => functionOf(lib, 'int malloc_trim(size_t)')?.(0) !== undefined,
    madvise: (address, length, advice) =>
      void madvise(`${length} bytes at 0x${address.toString(16)}`, address, length, advice),
    address: (data) => koffi.address(data),
  };
}

/** Calls a function until no signal interrupts it. `object` is what a failure is about; the rest goes to the function. */
function checkedCall(koffi: Koffi, prototype: string, fn: KoffiFunction) {
  const operation = nameIn(prototype);
  return (object: string, ...args: unknown[]): number => {
    for (;;) {
      const result = fn(...args);
      if (result !== -1) return result;
      const errno = koffi.errno();
      if (errno !== osConstants.errno.EINTR) throw new KernelError('ERR_SYSCALL', { operation, object, errno });
    }
  };
}

/** As `checkedCall`, on a worker thread. */
function checkedAsyncCall(koffi: Koffi, prototype: string, fn: KoffiFunction) {
  const operation = nameIn(prototype);
  return (object: string, ...args: unknown[]): Promise<number> =>
    new Promise((resolve, reject) => {
      const call = () =>
        fn.async(...args, (error, result) => {
          if (error) return reject(error);
          if (result !== -1) return resolve(result);
          const errno = koffi.errno();
          if (errno === osConstants.errno.EINTR) return call();
          reject(new KernelError('ERR_SYSCALL', { operation, object, errno }));
        });
      call();
    });
}

function nameIn(prototype: string): string {
  return /(\w+)\(/.exec(prototype)![1]!;
}

/** A function that not every C library has: musl lacks those of glibc's allocator. */
function functionOf(lib: KoffiLibrary, prototype: string): KoffiFunction | undefined {
  try {
    return lib.func(prototype);
  } catch {
    return undefined;
  }
}

/** bpf(2) has no function in the C library: its number, by Node's name of the architecture. */
const BPF_SYSCALL: Readonly<Record<string, number>> = { x64: 321, arm64: 280, riscv64: 280, loong64: 280, s390x: 351 };
const MSG_CMSG_CLOEXEC = 0x40000000;
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SCM_RIGHTS = 1;
/** struct cmsghdr { size_t len; int level; int type; }, followed by the data; both multiples of 8. */
const CMSG_HEADER = 16;
const CONTROL_LENGTH = CMSG_HEADER + 16 * 4;

/** socklen_t that says how much room there is; the kernel writes over it how much it used. */
function socklen(room: Uint8Array): Uint8Array {
  return new Uint8Array(Uint32Array.of(room.length).buffer);
}

/** struct sock_fprog { unsigned short len; struct sock_filter *filter; }, which points to `program`. */
function sockFprog(koffi: Koffi, program: Uint8Array): Buffer {
  const fprog = Buffer.alloc(16);
  fprog.writeUInt16LE(program.length / 8, 0);
  fprog.writeBigUInt64LE(koffi.address(program), 8);
  return fprog;
}

/** struct pollfd { int fd; short events; short revents; }, one for each descriptor. */
function pollfdArray(fds: readonly number[], events: number): Buffer {
  const pollfds = Buffer.alloc(8 * fds.length);
  for (const [i, fd] of fds.entries()) {
    pollfds.writeInt32LE(fd, 8 * i);
    pollfds.writeInt16LE(events, 8 * i + 4);
  }
  return pollfds;
}

function returnedEvents(pollfds: Buffer, index: number): number {
  return pollfds.readInt16LE(8 * index + 6);
}

/**
 * struct msghdr for receiving, with what it points to behind it, all 64 bits wide:
 * `void *name; uint32 namelen; iovec *iov; size_t iovlen; void *control; size_t controllen; int flags`, then
 * `struct iovec { void *base; size_t len }`, then room for control messages.
 */
class MessageHeader {
  readonly bytes = Buffer.alloc(56 + 16 + CONTROL_LENGTH);

  constructor(koffi: Koffi, data: Uint8Array) {
    const at = koffi.address(this.bytes);
    this.bytes.writeBigUInt64LE(at + 56n, 16);
    this.bytes.writeBigUInt64LE(1n, 24);
    this.bytes.writeBigUInt64LE(at + 72n, 32);
    this.bytes.writeBigUInt64LE(BigInt(CONTROL_LENGTH), 40);
    this.bytes.writeBigUInt64LE(koffi.address(data), 56);
    this.bytes.writeBigUInt64LE(BigInt(data.length), 64);
  }

  /** The kernel makes one control message of all descriptors, and closes those there is no room for. */
  descriptors(): number[] {
    const control = this.bytes.subarray(72, 72 + Number(this.bytes.readBigUInt64LE(40)));
    if (control.length < CMSG_HEADER) return [];
    const isRights = control.readInt32LE(8) === SOL_SOCKET && control.readInt32LE(12) === SCM_RIGHTS;
    const length = Number(control.readBigUInt64LE(0));
    if (!isRights) return [];
    return Array.from({ length: (length - CMSG_HEADER) >> 2 }, (_, i) => control.readInt32LE(CMSG_HEADER + 4 * i));
  }
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

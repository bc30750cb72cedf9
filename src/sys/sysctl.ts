import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { KernelError, NodeplaneError } from '../core/index.ts';

// Everything below net/ is per network namespace of the calling thread; run inside `inNetns` for another one.

/** Where sysctls are files. */
const DEFAULT_ROOT = '/proc/sys';
let root = DEFAULT_ROOT;

/**
 * Reads and writes sysctls below another folder from now on, in this thread: a container that is not privileged has /proc/sys
 * read-only, and can be given the node's /proc/sys/net elsewhere. What a mounted file shows follows the network namespace of the
 * thread that reads it, as in /proc/sys itself.
 *
 * @throws ERR_CONFIG when there are no network sysctls below it
 */
export function useProcSysRoot(path: string): void {
  if (!existsSync(`${path}/net`)) {
    throw new NodeplaneError(
      'ERR_CONFIG',
      `Cannot set sysctls below "${path}" (--proc-sys-root): it has no folder net; mount the node's /proc/sys/net at "${path}/net", or leave the flag out`,
      { facts: { path } },
    );
  }
  root = path;
}

/** The folder that `useProcSysRoot` named, for threads that are to use it too. */
export function procSysRoot(): string {
  return root;
}

/** Reads a sysctl such as `net/ipv4/ip_forward`, trimmed. Throws KernelError (ENOENT when this kernel has none). */
export function readSysctl(name: string): string {
  try {
    return readFileSync(`${root}/${name}`, 'utf8').trim();
  } catch (cause) {
    throw sysctlError('read sysctl', name, cause);
  }
}

/** Writes a sysctl only if it differs, so that a read-only /proc with the right value is no error. True if written. */
export function writeSysctl(name: string, value: string | number): boolean {
  const text = String(value);
  let fd: number;
  try {
    // Once for both: with many network namespaces it takes the kernel long to find the name in this one.
    fd = openSync(`${root}/${name}`, 'r+');
  } catch (cause) {
    if (readSysctl(name) === text) return false;
    throw sysctlError('write sysctl', `${name}=${text}`, cause);
  }
  try {
    if (readFileSync(fd, 'utf8').trim() === text) return false;
    // At the beginning: elsewhere the kernel ignores it.
    writeSync(fd, text, 0);
    return true;
  } catch (cause) {
    throw sysctlError('write sysctl', `${name}=${text}`, cause);
  } finally {
    closeSync(fd);
  }
}

/**
 * Whether a link of this name has sysctls in the namespace of the calling thread. All links have them but those whose MTU is
 * too small for IPv4, from when they are made until they are gone. Unlike a question by netlink it takes no lock: that of all
 * links is waited for where many pods come or go at once.
 */
export function hasSysctls(link: string): boolean {
  return existsSync(`${root}/net/ipv4/conf/${link}`);
}

/** The names in a folder of sysctls, such as the interfaces in `net/ipv6/conf`. Throws KernelError. */
export function listSysctls(folder: string): string[] {
  try {
    return readdirSync(`${root}/${folder}`);
  } catch (cause) {
    throw sysctlError('list sysctls', folder, cause);
  }
}

/** The ports that sockets get which ask for none. */
export interface LocalPorts {
  /** First and last: `32768 60999`. */
  readonly range: string;
  /** Whether the kernel may give it away: it is in the range, and not in net.ipv4.ip_local_reserved_ports. */
  has(port: number): boolean;
  /** How many there are, counted up to `most`. */
  count(most: number): number;
}

/** Of both families, as ip-sysctl says (Documentation/networking/ip-sysctl.rst). Throws KernelError. */
export function readLocalPorts(): LocalPorts {
  const range = readSysctl('net/ipv4/ip_local_port_range').split(/\s+/);
  const [first = 0, last = 0] = range.map(Number);
  // `30000-32767,40000`, or nothing.
  const reserved = readSysctl('net/ipv4/ip_local_reserved_ports')
    .split(',')
    .filter(Boolean)
    .map((part) => part.split('-').map(Number));
  const isReserved = (port: number) => reserved.some(([from = 0, to = from]) => from <= port && port <= to);
  const has = (port: number) => first <= port && port <= last && !isReserved(port);
  const count = (most: number) => {
    let found = 0;
    for (let port = first; port <= last && found < most; port++) if (has(port)) found++;
    return found;
  };
  return { range: range.join(' '), has, count };
}

const READ_ONLY =
  'it is read-only in this container: set it on the node, run --init-only in a container that may (delete this pod, so that its init container runs again with the present settings), or mount the node’s /proc/sys/net and name the place with --proc-sys-root';

function sysctlError(operation: string, object: string, cause: unknown): KernelError {
  const errno = -((cause as NodeJS.ErrnoException).errno ?? -osConstants.errno.EIO);
  const remedy = errno === osConstants.errno.EROFS ? READ_ONLY : undefined;
  return new KernelError('ERR_SYSCALL', { operation, object, errno, remedy, cause });
}

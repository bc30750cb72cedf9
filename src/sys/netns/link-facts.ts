import { isNotFound } from '../../core/index.ts';
import { libc } from '../libc.ts';

/** What the kernel tells of a network interface without the lock of all links (RTNL). */
export interface LinkFacts {
  readonly index: number;
  /** The low 16 of its IFF_* bits. */
  readonly flags: number;
  readonly mtu: number;
  /** The MAC address, 6 bytes. */
  readonly address: Uint8Array;
}

// <sys/socket.h>, <linux/sockios.h>
const AF_UNIX = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2000000;
const SIOCGIFFLAGS = 0x8913;
const SIOCGIFMTU = 0x8921;
const SIOCGIFHWADDR = 0x8927;
const SIOCGIFINDEX = 0x8933;
/** struct ifreq { char name[16]; union { short flags; int mtu; int index; struct sockaddr { u16 family; u8 data[14] } hwaddr } } */
const IFREQ_LENGTH = 40;
const IFNAMSIZ = 16;

/**
 * Asks for a network interface in the namespace of the calling thread (netdevice(7)). A question by netlink waits for the lock
 * that every change of a link takes, and where many pods come or go at once that takes longer than all else.
 *
 * Ask only for one that should be there: for a name without one the kernel may look for a module.
 *
 * @param name at most 15 bytes
 * @returns undefined when there is none
 * @throws KernelError
 */
export function linkFacts(name: string): LinkFacts | undefined {
  const fd = libc().socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const ask = (request: number) => {
    const ifreq = Buffer.alloc(IFREQ_LENGTH);
    ifreq.write(name, 0, IFNAMSIZ - 1, 'latin1');
    libc().ioctl(fd, request, ifreq);
    return ifreq.subarray(IFNAMSIZ);
  };
  try {
    return {
      index: ask(SIOCGIFINDEX).readInt32LE(),
      flags: ask(SIOCGIFFLAGS).readUInt16LE(),
      mtu: ask(SIOCGIFMTU).readInt32LE(),
      address: ask(SIOCGIFHWADDR).subarray(2, 8),
    };
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  } finally {
    libc().close(fd);
  }
}

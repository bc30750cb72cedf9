import { type IpFamily, isNotFound } from '../../core/index.ts';
import { listSysctls, readSysctl, writeSysctl } from '../../sys/index.ts';

/** Writes a sysctl unless this kernel has none of that name (it was built or booted without IPv6). True if it changed. */
export function writeSysctlIfPresent(name: string, value: string | number): boolean {
  try {
    return writeSysctl(name, value);
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}

/** Makes the node forward between pods and the rest of the world. */
export function enableForwarding(families: Iterable<IpFamily>): void {
  for (const family of families) {
    if (family === 'IPv4') writeSysctl('net/ipv4/ip_forward', 1);
    else if (readSysctl('net/ipv6/conf/all/forwarding') !== '1') {
      keepRouterAdvertisements();
      writeSysctl('net/ipv6/conf/all/forwarding', 1);
    }
  }
}

/**
 * A node that forwards ignores router advertisements, and loses the default route it has from them, except on interfaces
 * whose accept_ra is 2 (kernel: Documentation/networking/ip-sysctl.rst).
 */
function keepRouterAdvertisements(): void {
  for (const link of listSysctls('net/ipv6/conf')) {
    if (['all', 'default', 'lo'].includes(link)) continue;
    const name = `net/ipv6/conf/${link}/accept_ra`;
    try {
      if (readSysctl(name) === '1') writeSysctl(name, 2);
    } catch (error) {
      // The link was deleted meanwhile.
      if (!isNotFound(error)) throw error;
    }
  }
}

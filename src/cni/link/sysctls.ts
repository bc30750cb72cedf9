import { type IpFamily, ifPresent } from '../../core/index.ts';
import { listSysctls, readSysctl, writeSysctl } from '../../sys/index.ts';

/** Writes a sysctl unless this kernel has none of that name (it was built or booted without IPv6). True if it changed. */
export function writeSysctlIfPresent(name: string, value: string | number): boolean {
  return ifPresent(() => writeSysctl(name, value)) ?? false;
}

/** The sysctl by which the node forwards, by family. */
export const FORWARDING: Readonly<Record<IpFamily, string>> = {
  IPv4: 'net/ipv4/ip_forward',
  IPv6: 'net/ipv6/conf/all/forwarding',
};

/** True of a family that this kernel does not have. */
export function isForwarding(family: IpFamily): boolean {
  const found = ifPresent(() => readSysctl(FORWARDING[family]));
  return found === undefined || found === '1';
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
    // The link may be deleted meanwhile.
    ifPresent(() => readSysctl(name) === '1' && writeSysctl(name, 2));
  }
}

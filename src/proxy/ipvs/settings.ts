import { isNotFound } from '../../core/index.ts';
import { resolveFamily, withNetlink } from '../../netlink/index.ts';
import { IPVS_GENL_NAME, type IpvsTimeouts, setIpvsTimeouts } from '../../netlink/ipvs/index.ts';
import { NETLINK_GENERIC } from '../../netlink/uapi/index.ts';
import { writeSysctl } from '../../sys/index.ts';

/** What of IPVS is set once for the node. */
export interface IpvsSettings {
  /** Answer ARP requests for the addresses of the interface they come in by only, not for Services (--ipvs-strict-arp). */
  readonly strictArp: boolean;
  /** In milliseconds; 0 leaves one as it is. Less than a second counts as one. */
  readonly tcpTimeoutMs: number;
  readonly tcpFinTimeoutMs: number;
  readonly udpTimeoutMs: number;
}

/** A sysctl that makes IPVS behave, and why. */
const SYSCTLS: Readonly<Record<string, number>> = {
  // Its packets are known to conntrack: masquerading needs that.
  'net/ipv4/vs/conntrack': 1,
  // A client that uses a port again is not sent elsewhere, which took a second each with conntrack.
  'net/ipv4/vs/conn_reuse_mode': 0,
  // Connections to a destination that is gone end with their next packet; UDP finds another one.
  'net/ipv4/vs/expire_nodest_conn': 1,
  // Clients remembered for a destination of weight 0 are sent elsewhere.
  'net/ipv4/vs/expire_quiescent_template': 1,
  'net/ipv4/ip_forward': 1,
};

const STRICT_ARP: Readonly<Record<string, number>> = {
  'net/ipv4/conf/all/arp_ignore': 1,
  'net/ipv4/conf/all/arp_announce': 2,
};

/** The sysctls that `prepareIpvs` sets, by name. */
export function ipvsSysctls({ strictArp }: Pick<IpvsSettings, 'strictArp'>): Readonly<Record<string, number>> {
  return { ...SYSCTLS, ...(strictArp && STRICT_ARP) };
}

/**
 * Sets up IPVS in the network namespace of the calling thread.
 *
 * @returns the sysctls that were changed, as `name=value`
 * @throws KernelError when one cannot be written or a timeout is refused
 */
export function prepareIpvs(settings: IpvsSettings): string[] {
  const written: string[] = [];
  for (const [name, value] of Object.entries(ipvsSysctls(settings))) {
    try {
      if (writeSysctl(name, value)) written.push(`${name}=${value}`);
    } catch (error) {
      // Before Linux 4.1 there was no such mode, and nothing to switch off.
      if (!(name.endsWith('conn_reuse_mode') && isNotFound(error))) throw error;
    }
  }
  const { tcpTimeoutMs, tcpFinTimeoutMs, udpTimeoutMs } = settings;
  const timeouts = { tcp: seconds(tcpTimeoutMs), tcpFin: seconds(tcpFinTimeoutMs), udp: seconds(udpTimeoutMs) };
  if (timeouts.tcp + timeouts.tcpFin + timeouts.udp > 0) setTimeouts(timeouts);
  return written;
}

function setTimeouts(timeouts: IpvsTimeouts): void {
  withNetlink(NETLINK_GENERIC, (netlink) =>
    netlink.execute(setIpvsTimeouts(resolveFamily(netlink, IPVS_GENL_NAME), timeouts)),
  );
}

function seconds(milliseconds: number): number {
  return milliseconds > 0 ? Math.max(1, Math.floor(milliseconds / 1000)) : 0;
}

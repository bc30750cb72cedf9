import type { IpvsStatistics } from '../../netlink/ipvs/index.ts';
import type { PortTraffic } from '../index.ts';
import { serverKey } from './compile/server.ts';
import type { Layout } from './diff/layout.ts';
import type { IpvsKernel } from './kernel/kernel.ts';

/**
 * Adds up the counters of each Service port's virtual servers, by key; one listing for all. A counter falls when a virtual server goes
 * (an external IP is taken away, say) and starts from zero when one is made anew.
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function readTraffic(kernel: IpvsKernel, layout: Layout): ReadonlyMap<string, PortTraffic> {
  const traffic = new Map<string, PortTraffic>();
  for (const { key, statistics } of kernel.listServers()) {
    const owner = layout.servers.get(serverKey(key))?.owner;
    if (owner !== undefined) traffic.set(owner, sum(traffic.get(owner), statistics));
  }
  return traffic;
}

function sum(before: PortTraffic | undefined, more: IpvsStatistics): PortTraffic {
  const both = (key: keyof PortTraffic & keyof IpvsStatistics) => (before?.[key] ?? 0) + Number(more[key]);
  return {
    connections: both('connections'),
    packetsIn: both('packetsIn'),
    packetsOut: both('packetsOut'),
    bytesIn: both('bytesIn'),
    bytesOut: both('bytesOut'),
  };
}

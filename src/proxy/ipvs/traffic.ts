import type { IpvsStatistics } from '../../netlink/ipvs/index.ts';
import { serverKey } from './compile/server.ts';
import type { Layout } from './diff/layout.ts';
import type { IpvsKernel } from './kernel/kernel.ts';

/** What one Service has carried since its virtual servers were made: 64-bit counters. */
export type ServiceTraffic = IpvsStatistics;

/**
 * Adds up the counters of each Service's virtual servers, by Service name; one listing for all. A counter falls when a
 * virtual server goes (an external IP is taken away, say) and starts from zero when one is made anew.
 *
 * @throws KernelError, ERR_NETLINK_DECODE
 */
export function readTraffic(kernel: IpvsKernel, layout: Layout): ReadonlyMap<string, ServiceTraffic> {
  const traffic = new Map<string, ServiceTraffic>();
  for (const { key, statistics } of kernel.listServers()) {
    const owner = layout.servers.get(serverKey(key))?.owner;
    const service = owner === undefined ? undefined : layout.ports.get(owner)?.serviceName;
    if (service === undefined) continue;
    const before = traffic.get(service);
    traffic.set(service, before ? sum(before, statistics) : statistics);
  }
  return traffic;
}

function sum(a: IpvsStatistics, b: IpvsStatistics): IpvsStatistics {
  return {
    connections: a.connections + b.connections,
    packetsIn: a.packetsIn + b.packetsIn,
    packetsOut: a.packetsOut + b.packetsOut,
    bytesIn: a.bytesIn + b.bytesIn,
    bytesOut: a.bytesOut + b.bytesOut,
  };
}

import type { PreparedMode, ServicePortPlan } from '../../../proxy/index.ts';
import { NO_TRAFFIC, type PortReading } from './traffic-book.ts';
import type { TrafficSource } from './traffic-source.ts';

/** What a mode has carried whose objects in the kernel count by themselves: virtual servers of IPVS. */
export function kernelTraffic(
  read: NonNullable<PreparedMode['traffic']>,
  ports: () => Iterable<ServicePortPlan>,
): TrafficSource {
  return {
    hasCarried: true,
    lost: 0,
    note: () => {},
    async read() {
      const counted = read();
      return [...ports()].map((port): PortReading => {
        const counts = counted.get(port.clusterIp.family)?.get(port.key) ?? NO_TRAFFIC;
        return { port, counts };
      });
    },
    close: async () => {},
  };
}

import { Counter, Gauge, type Registry } from 'prom-client';
import type { IpFamily } from '../../../core/index.ts';
import type { ServiceTraffic } from '../traffic.ts';

/** Where the counters of one family come from. */
export interface TrafficReader {
  readonly family: IpFamily;
  /** By Service, `namespace/name`. */
  traffic(): ReadonlyMap<string, ServiceTraffic>;
}

const COUNTS = {
  connections: ['connections', 'Connections'],
  packetsIn: ['packets_in', 'Packets from clients'],
  packetsOut: ['packets_out', 'Packets to clients'],
  bytesIn: ['bytes_in', 'Bytes from clients'],
  bytesOut: ['bytes_out', 'Bytes to clients'],
} as const satisfies Record<keyof ServiceTraffic, readonly [name: string, help: string]>;

const LABELS = ['ip_family', 'namespace', 'service'] as const;

/**
 * Registers five counters for each Service and family, read from the kernel at each scrape. Every Service is a label value,
 * and those cost whoever stores them: with more than `most` Services none is shown, and a gauge says so.
 */
export function registerTrafficMetrics(registry: Registry, most: number, readers: () => Iterable<TrafficReader>): void {
  const registers = [registry];
  const counters = new Map<keyof ServiceTraffic, Counter<(typeof LABELS)[number]>>();
  // The registry asks its metrics in the order in which they came: the first reads the kernel for all.
  new Gauge({
    name: 'nodeplane_service_traffic_hidden',
    help: 'Services whose traffic is not shown because there are more than --service-traffic-metrics allows.',
    registers,
    collect() {
      const all = [...readers()].map((reader) => [reader.family, reader.traffic()] as const);
      const services = new Set(all.flatMap(([, traffic]) => [...traffic.keys()]));
      for (const counter of counters.values()) counter.reset();
      this.set(services.size > most ? services.size : 0);
      if (services.size > most) return;
      for (const [ip_family, traffic] of all) {
        for (const [name, counts] of traffic) {
          const [namespace = '', service = ''] = name.split('/');
          for (const [key, counter] of counters) counter.inc({ ip_family, namespace, service }, Number(counts[key]));
        }
      }
    },
  });
  for (const [key, [name, what]] of Object.entries(COUNTS)) {
    const help = `${what} of a Service on this node, since its virtual servers were made.`;
    const counter = new Counter({ name: `nodeplane_service_${name}_total`, help, labelNames: LABELS, registers });
    counters.set(key as keyof ServiceTraffic, counter);
  }
}

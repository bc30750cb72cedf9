import { Counter, Gauge, type Registry } from 'prom-client';
import { errorText } from '../../../core/index.ts';
import type { PortTraffic } from '../../../proxy/index.ts';
import type { Logger } from '../../logger.ts';
import { TrafficBook, type TrafficLine } from './traffic-book.ts';
import type { TrafficSource } from './traffic-source.ts';

const LABELS = ['ip_family', 'namespace', 'service', 'port', 'protocol'] as const;
type Labels = Record<(typeof LABELS)[number], string>;

/** The name of no Service: those have a namespace. */
const OTHERS = { namespace: '', service: 'other', port: '', protocol: '' };

export interface TrafficMetricsOptions {
  readonly registry: Registry;
  readonly logger: Pick<Logger, 'warn'>;
  readonly source: TrafficSource;
  /** How many Service ports have series of their own at most. */
  readonly lines: number;
}

/**
 * Registers counters by Service port, read at each scrape. Every port is a set of label values, and those cost whoever stores them:
 * the busiest have series of their own, the others one together for each family.
 */
export function registerTrafficMetrics({ registry, logger, source, lines }: TrafficMetricsOptions): void {
  const book = new TrafficBook(lines);
  let problem = '';
  let reading: Promise<void> | undefined;
  // The registry asks all metrics at once: they share a reading.
  const collect = () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
  const common = { registers: [registry], collect };
  const hidden = new Gauge({
    ...common,
    name: 'nodeplane_service_traffic_hidden',
    help: 'Service ports without traffic series of their own because there are more than --service-traffic-metrics allows: they are in those of service="other".',
  });
  const lost = new Counter({
    ...common,
    name: 'nodeplane_service_traffic_lost_total',
    help: 'Times that connections of Services began or ended faster than they could be counted: some are missing in the traffic metrics.',
  });
  const open = new Gauge({
    ...common,
    name: 'nodeplane_service_open_connections',
    help: 'Connections through a Service port that this node tracks, those that have just ended included.',
    labelNames: LABELS,
  });
  const counter = (name: string, what: string) =>
    new Counter({ ...common, name, help: `${what} a Service port on this node.`, labelNames: LABELS });
  const counters: (readonly [keyof PortTraffic, Counter<keyof Labels>])[] = [
    ['connections', counter('nodeplane_service_connections_total', 'Connections made through')],
  ];
  if (source.hasCarried) {
    counters.push(
      ['packetsIn', counter('nodeplane_service_packets_in_total', 'Packets from clients of')],
      ['packetsOut', counter('nodeplane_service_packets_out_total', 'Packets to clients of')],
      ['bytesIn', counter('nodeplane_service_bytes_in_total', 'Bytes from clients of')],
      ['bytesOut', counter('nodeplane_service_bytes_out_total', 'Bytes to clients of')],
    );
  }

  async function read(): Promise<void> {
    try {
      book.take(await source.read());
      problem = '';
    } catch (error) {
      const text = errorText(error);
      if (text !== problem)
        logger.warn({ err: error }, 'The traffic of Services cannot be read: its metrics stand still');
      problem = text;
    }
    hidden.set(book.hidden);
    lost.reset();
    lost.inc(source.lost);
    open.reset();
    for (const [, each] of counters) each.reset();
    for (const line of book.lines()) {
      const labels = labelsOf(line);
      for (const [key, each] of counters) each.inc(labels, line.counts[key]);
      if (line.open !== undefined) open.set(labels, line.open);
    }
  }
}

function labelsOf({ family, port }: TrafficLine): Labels {
  if (!port) return { ip_family: family, ...OTHERS };
  const [namespace = '', service = ''] = port.serviceName.split('/');
  return { ip_family: family, namespace, service, port: String(port.port), protocol: port.protocol };
}

import type { IpFamily } from '../../../core/index.ts';
import type { PreparedMode } from '../../../proxy/index.ts';
import type { PartContext } from '../../part.ts';
import type { Family } from '../family.ts';
import { ConntrackTraffic } from './conntrack-traffic.ts';
import { kernelTraffic } from './kernel-traffic.ts';
import { registerTrafficMetrics } from './traffic-metrics.ts';
import type { TrafficSource } from './traffic-source.ts';

/**
 * Begins to count the traffic of Services and shows it as metrics, where that is asked for. What cannot be counted is told in the log,
 * and Services work all the same.
 *
 * @param families those that are served, asked at each scrape
 */
export function beginTraffic(
  { config, registry, clock, logger }: Pick<PartContext, 'config' | 'registry' | 'clock' | 'logger'>,
  prepared: PreparedMode,
  families: () => ReadonlyMap<IpFamily, Family>,
): TrafficSource | undefined {
  const { serviceTrafficMetrics: lines } = config;
  if (lines === 0) return undefined;
  const { traffic } = prepared;
  const ports = () => [...families().values()].flatMap(({ proxy }) => [...proxy.plan.ports.values()]);
  try {
    const source = traffic ? kernelTraffic(traffic, ports) : new ConntrackTraffic(prepared.families, clock);
    registerTrafficMetrics({ registry, logger, source, lines });
    if (!source.hasCarried) {
      logger.info('Packets and bytes of Services are not counted: net.netfilter.nf_conntrack_acct is 0 on this node');
    }
    return source;
  } catch (error) {
    logger.warn({ err: error }, 'The traffic of Services cannot be counted: its metrics are missing');
    return undefined;
  }
}

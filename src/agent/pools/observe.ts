import { Gauge, type Registry } from 'prom-client';
import { type Cidr, IP_FAMILIES, type IpFamily } from '../../core/index.ts';
import type { BlockUse, PoolProblem } from '../../pools/index.ts';
import type { Logger } from '../logger.ts';
import type { OwnRanges } from './pod-ranges.ts';

/** Registers the metrics of pod addresses; what they say is asked at each scrape. */
export function rangeMetrics(registry: Registry, own: () => OwnRanges, use: (range: Cidr) => BlockUse): void {
  const common = { registers: [registry] };
  const isOf =
    (family: IpFamily) =>
    ({ address }: Cidr) =>
      address.family === family;
  new Gauge({
    ...common,
    name: 'nodeplane_pod_ranges',
    help: 'Ranges (podCIDRs, or blocks of the pools) that pods of this node have addresses of: `open` for new pods, or `closed`. No open one: new pods get no address, and the log says why.',
    labelNames: ['ip_family', 'state'],
    collect() {
      const { sets, held } = own();
      for (const ip_family of IP_FAMILIES) {
        const open = sets.flat().filter(isOf(ip_family)).length;
        this.set({ ip_family, state: 'open' }, open);
        this.set({ ip_family, state: 'closed' }, Math.max(0, held.filter(isOf(ip_family)).length - open));
      }
    },
  });
  new Gauge({
    ...common,
    name: 'nodeplane_pod_addresses',
    help: 'Addresses of those ranges: `used` by pods, and `free` for new ones.',
    labelNames: ['ip_family', 'state'],
    collect() {
      const { sets, held } = own();
      const sum = (ranges: readonly Cidr[], state: keyof BlockUse) =>
        ranges.reduce((total, range) => total + use(range)[state], 0);
      for (const ip_family of IP_FAMILIES) {
        this.set({ ip_family, state: 'used' }, sum(held.filter(isOf(ip_family)), 'used'));
        this.set({ ip_family, state: 'free' }, sum(sets.flat().filter(isOf(ip_family)), 'free'));
      }
    },
  });
}

/** Tells each problem once, and when all are over. */
export function logPoolProblems(logger: Logger): (problems: readonly PoolProblem[]) => void {
  let known = new Set<string>();
  return (problems) => {
    for (const { code, message } of problems) {
      if (!known.has(message)) logger.error({ code, reason: message }, 'Blocks of pod addresses are not in order');
    }
    if (known.size > 0 && problems.length === 0) logger.info('Blocks of pod addresses are in order again');
    known = new Set(problems.map(({ message }) => message));
  };
}

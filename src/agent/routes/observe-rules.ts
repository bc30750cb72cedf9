import { Counter, type Registry } from 'prom-client';
import { type Clock, formatIp, IP_FAMILIES, type IpFamily } from '../../core/index.ts';
import type { RuleObserver } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';

/** Whoever tries the tunnel all the time is told of as seldom as this, in each family. */
const TELL_REFUSED_MS = 600_000;
/** Two programs that undo each other's work do so several times a second. */
const TELL_REPAIRED_MS = 60_000;
/** As many addresses as somebody reads. */
const SOURCES_TOLD = 10;

/** Writes what becomes of the rules beside the routes into the log. */
export function logRuleEvents(logger: Logger, clock: Pick<Clock, 'now'>): RuleObserver {
  const untold = new Map<IpFamily, { readonly packets: number; readonly at: number }>();
  let repairs = { untold: 0, toldAt: Number.NEGATIVE_INFINITY };
  return (event) => {
    switch (event.kind) {
      case 'synced': {
        const { full, seconds, elements, repaired } = event;
        const count = repairs.untold + (repaired ? 1 : 0);
        const isDue = repaired && clock.now() - repairs.toldAt >= TELL_REPAIRED_MS;
        const level = full && elements > 0 && (isDue || !repaired) ? 'info' : 'debug';
        logger[level]({ full, seconds, elements }, 'Rules for the tunnel and for masquerading synced');
        repairs = isDue ? { untold: 0, toldAt: clock.now() } : { ...repairs, untold: count };
        if (isDue) {
          logger.warn(
            { count },
            'Somebody removed or changed our rules for the tunnel and for masquerading; they are back (`nodeplane status` names who changed nf_tables last)',
          );
        }
        break;
      }
      case 'syncFailed': {
        const { error, retryInMs } = event;
        logger.error(
          { retryInMs, err: error },
          'The rules for the tunnel and for masquerading cannot be written; those before stay in force',
        );
        break;
      }
      case 'disturbed':
        logger.debug('Our rules for the tunnel and for masquerading may have changed; comparing all of them');
        break;
      case 'verifyFailed':
        logger.warn({ err: event.error }, 'What the tunnel refused cannot be read');
        break;
      case 'refused': {
        const { family, sources } = event;
        const { packets: before, at } = untold.get(family) ?? { packets: 0, at: Number.NEGATIVE_INFINITY };
        const packets = before + event.packets;
        const isDue = clock.now() - at >= TELL_REFUSED_MS;
        untold.set(family, { packets: isDue ? 0 : packets, at: isDue ? clock.now() : at });
        if (!isDue) break;
        logger.warn(
          { family, packets, sources: sources.slice(0, SOURCES_TOLD).map(formatIp).join(' ') },
          'Packets to the tunnel that came from no node were dropped',
        );
      }
    }
  };
}

/** Registers the metrics of the rules, and returns the observer that feeds them. */
export function ruleMetrics(registry: Registry): RuleObserver {
  const registers = [registry];
  const refused = new Counter({
    registers,
    name: 'nodeplane_routes_refused_packets_total',
    help: 'Packets to the tunnel that came from no node, and were dropped.',
    labelNames: ['ip_family'],
  });
  // The first step from nothing to 1 is no increase to Prometheus.
  for (const ip_family of IP_FAMILIES) refused.inc({ ip_family }, 0);
  const failures = new Counter({
    registers,
    name: 'nodeplane_routes_rule_failures_total',
    help: 'Syncs of the rules for the tunnel and for masquerading that failed; each is tried again.',
  });
  const repairs = new Counter({
    registers,
    name: 'nodeplane_routes_rule_repairs_total',
    help: 'Times that others had removed or changed the rules for the tunnel and for masquerading, which were made anew.',
  });
  return (event) => {
    if (event.kind === 'refused') refused.inc({ ip_family: event.family }, event.packets);
    if (event.kind === 'syncFailed') failures.inc();
    if (event.kind === 'synced' && event.repaired) repairs.inc();
  };
}

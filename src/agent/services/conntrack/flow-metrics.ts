import { Counter, Histogram, type Registry } from 'prom-client';
import { SYNC_BUCKETS } from '../../../proxy/index.ts';
import type { Logger } from '../../logger.ts';
import type { FlowCleaning } from './flow-cleaner.ts';

/** Counts the cleanings of tracked flows, under kube-proxy's names, and logs those that could not be finished. */
export function flowMetrics(registry: Registry, logger: Logger): (cleaning: FlowCleaning) => void {
  const common = { labelNames: ['ip_family'], registers: [registry] };
  const seconds = new Histogram({
    ...common,
    name: 'kubeproxy_conntrack_reconciler_sync_duration_seconds',
    help: '[ALPHA] ReconcileConntrackFlowsLatency latency in seconds',
    buckets: SYNC_BUCKETS,
  });
  const deleted = new Counter({
    ...common,
    name: 'kubeproxy_conntrack_reconciler_deleted_entries_total',
    help: '[ALPHA] Cumulative conntrack flows deleted by conntrack reconciler',
  });
  return (cleaning) => {
    const labels = { ip_family: cleaning.family };
    seconds.observe(labels, cleaning.seconds);
    deleted.inc(labels, cleaning.deleted);
    const { error, ...figures } = cleaning;
    if (error !== undefined) {
      logger.warn({ ...figures, err: error }, 'Stale flows may remain in conntrack; the next sync looks at them again');
    } else if (cleaning.deleted > 0) {
      logger.info(figures, 'Stale flows removed from conntrack');
    }
  };
}

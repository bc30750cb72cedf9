import { NodeplaneError } from '../../core/index.ts';
import type { ModeMetrics } from '../index.ts';

/** kube-proxy's count of iptables-restore runs that failed. In mode ipvs most of a commit is netlink, which it does not count. */
export const RESTORE_METRICS: ModeMetrics = {
  definitions: {
    sync_proxy_rules_iptables_restore_failures_total: {
      type: 'counter',
      help: 'Cumulative proxy iptables restore failures',
      labels: ['ip_family'],
    },
  },
  observe(event, { count }) {
    if (event.kind !== 'syncFailed' || event.stage !== 'commit' || !isRestoreFailure(event.error)) return;
    count('sync_proxy_rules_iptables_restore_failures_total', { ip_family: event.family });
  },
};

/** Whether iptables-restore failed, rather than something else of a commit. */
export function isRestoreFailure(error: unknown): boolean {
  return error instanceof NodeplaneError && error.code === 'ERR_IPTABLES';
}

import { combineMetrics, FULL_AND_PARTIAL_METRICS, type ModeMetrics } from '../../index.ts';
import { isRestoreFailure, RESTORE_METRICS } from '../../rules/index.ts';

/** What kube-proxy shows of its rules in mode iptables alone. */
const RULES: ModeMetrics = {
  definitions: {
    sync_proxy_rules_iptables_total: {
      type: 'gauge',
      help: 'Total number of iptables rules owned by kube-proxy',
      labels: ['table', 'ip_family'],
    },
    sync_proxy_rules_iptables_last: {
      type: 'gauge',
      help: 'Number of iptables rules written by kube-proxy in last sync',
      labels: ['table', 'ip_family'],
    },
    sync_proxy_rules_iptables_partial_restore_failures_total: {
      type: 'counter',
      help: 'Cumulative proxy iptables partial restore failures',
      labels: ['ip_family'],
    },
  },
  observe(event, { count, set }) {
    const ip_family = event.family;
    if (event.kind === 'syncFinished') {
      for (const [table, { total, written }] of Object.entries(event.commit?.objects ?? {})) {
        set('sync_proxy_rules_iptables_total', total, { ip_family, table });
        set('sync_proxy_rules_iptables_last', written, { ip_family, table });
      }
    } else if (
      event.kind === 'syncFailed' &&
      event.stage === 'commit' &&
      !event.full &&
      isRestoreFailure(event.error)
    ) {
      count('sync_proxy_rules_iptables_partial_restore_failures_total', { ip_family });
    }
  },
};

export const IPTABLES_METRICS = combineMetrics(FULL_AND_PARTIAL_METRICS, RESTORE_METRICS, RULES);

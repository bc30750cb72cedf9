import { combineMetrics, FULL_AND_PARTIAL_METRICS, type ModeMetrics } from '../../index.ts';

const FAILURES: ModeMetrics = {
  definitions: {
    sync_proxy_rules_nftables_sync_failures_total: {
      type: 'counter',
      help: 'Cumulative proxy nftables sync failures',
      labels: ['ip_family'],
    },
  },
  observe(event, { count }) {
    if (event.kind !== 'syncFailed' || event.stage !== 'commit') return;
    count('sync_proxy_rules_nftables_sync_failures_total', { ip_family: event.family });
  },
};

/** What kube-proxy shows in mode nftables alone. */
export const NFTABLES_METRICS = combineMetrics(FULL_AND_PARTIAL_METRICS, FAILURES);

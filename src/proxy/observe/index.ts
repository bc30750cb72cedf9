export { ProxyHealth } from './health.ts';
export { SYNC_BUCKETS } from './metric-definitions.ts';
export { ProxyMetrics } from './metrics.ts';
export { combineMetrics, FULL_AND_PARTIAL_METRICS, type ModeMetrics } from './mode-metrics.ts';

export { type HealthAnswer, ProxyHealth, type ProxyHealthOptions } from './health.ts';
export { ProxyMetrics } from './metrics.ts';
export { combineMetrics, FULL_AND_PARTIAL_METRICS, type MetricWriter, type ModeMetrics } from './mode-metrics.ts';

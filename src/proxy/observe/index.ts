export { type HealthAnswer, ProxyHealth, type ProxyHealthOptions } from './health.ts';
export { ProxyMetrics } from './metrics.ts';

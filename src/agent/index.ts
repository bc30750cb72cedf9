export { cleanup } from './cleanup.ts';
export { type UninstallOptions, uninstallCni } from './cni-install/uninstall.ts';
export type { Build } from './component-metrics.ts';
export { FlowCleaner } from './conntrack/flow-cleaner.ts';
export { openFlowTable } from './conntrack/flow-table.ts';
export { applyConntrackSettings } from './conntrack/sysctls.ts';
export { HealthCheckPorts } from './health-check-ports.ts';
export { type AgentWork, initialise, runAgent } from './run.ts';

export { cleanup } from './cleanup.ts';
export { standardConflist } from './cni-install/conflist.ts';
export { type UninstallOptions, uninstallCni } from './cni-install/uninstall.ts';
export { WorkerPool } from './cni-server/worker-pool.ts';
export { FlowCleaner } from './conntrack/flow-cleaner.ts';
export { openFlowTable } from './conntrack/flow-table.ts';
export { applyConntrackSettings } from './conntrack/sysctls.ts';
export { HealthCheckPorts } from './health-check-ports.ts';
export { type AgentWork, initialise, runAgent } from './run.ts';

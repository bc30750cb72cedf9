export { cleanup } from './cleanup.ts';
export { standardConflist } from './cni/install/conflist.ts';
export { type UninstallOptions, uninstallCni } from './cni/install/uninstall.ts';
export { WorkerPool } from './cni/threads/worker-pool.ts';
export { type ShowDiffOptions, type ShownDiff, showDiff } from './diff/show-diff.ts';
export { type Explained, type ExplainOptions, explainHere } from './explain/explain-here.ts';
export { readKnowledge } from './explain/offline.ts';
export { initialise } from './init/initialise.ts';
export type { Build } from './metrics/component-metrics.ts';
export { leaveToKubeProxy } from './migration/leave-to-kube-proxy.ts';
export { noteLeft } from './migration/note-of-node.ts';
export { type MigrationReport, migrationReport, migrationText } from './migration/show-migration.ts';
export type { IpamFinding } from './pools/report/check-addresses.ts';
export { checkAddressesOf, type IpamCheck, showAddresses } from './pools/report/ipam.ts';
export type { IpamReport } from './pools/report/ipam-report.ts';
export { type PreflightOptions, preflightNode } from './preflight-node.ts';
export { cleanupRoutes } from './routes/left/cleanup-routes.ts';
export { type ShowRoutesOptions, type ShowRoutesResult, showRoutes } from './routes/show/show-routes.ts';
export { type AgentWork, runAgent } from './run.ts';
export { FlowCleaner } from './services/conntrack/flow-cleaner.ts';
export { type FlowTable, openFlowTable } from './services/conntrack/flow-table.ts';
export { applyConntrackSettings } from './services/conntrack/sysctls.ts';
export { HealthCheckPorts } from './services/health-check-ports.ts';
export { localAddresses } from './services/local-addresses.ts';
export { agentAtWork, agentWrites } from './standby/agent-at-work.ts';
export { AGENT_ADDRESS } from './status/own-commands.ts';
export {
  type ShownStatus,
  type ShowServicesOptions,
  type ShowStatusOptions,
  showServices,
  showStatus,
  showTopServices,
} from './status/show/show-status.ts';
export { type ShowTraceOptions, showTrace } from './trace/index.ts';

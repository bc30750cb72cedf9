export type { World } from './check.ts';
export { bridgeNfOutcome, routeLocalnetOutcome } from './checks/node.ts';
export { CHECKS } from './checks.ts';
export { ownCapabilities } from './facts/capabilities.ts';
export { whyNoIpv6 } from './facts/families.ts';
export { readCluster } from './facts/read-cluster.ts';
export { readNode } from './facts/read-node.ts';
export { type PreflightReport, reportJson, reportOf, reportText } from './report.ts';
export { runChecks } from './run-checks.ts';

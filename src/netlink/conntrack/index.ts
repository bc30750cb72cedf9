export { ensureAccounting, getAccounting } from './accounting.ts';
export { deleteFlows, type FlowListing, flowDeletion, flowListing, listFlows, walkFlows } from './conntrack.ts';
export type { Flow } from './flow.ts';

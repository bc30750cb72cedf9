export { ensureAccounting, getAccounting } from './accounting.ts';
export { deleteFlows, type FlowListing, flowDeletion, flowListing, listFlows, walkFlows } from './conntrack.ts';
export type { Flow } from './flow.ts';
export { type UnansweredBounds, type UnansweredWatch, watchUnanswered } from './unanswered.ts';

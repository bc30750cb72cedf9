export { type Accounting, ensureAccounting, getAccounting } from './accounting.ts';
export {
  deleteFlows,
  type FlowDestination,
  type FlowListing,
  flowDeletion,
  flowListing,
  listFlows,
  walkFlows,
} from './conntrack.ts';
export { decodeFlow, type Flow, type FlowDirection, type FlowFilter } from './flow.ts';

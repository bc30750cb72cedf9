export { ensureAccounting, getAccounting } from './accounting.ts';
export {
  deleteFlows,
  type FlowListing,
  type FlowState,
  flowDeletion,
  flowListing,
  listFlowStates,
  listFlows,
  sampleReplaceable,
  walkFlows,
} from './conntrack.ts';
export { readTrackingCounters, type TrackingCounters } from './counters.ts';
export type { Flow, FlowDirection, FlowFilter } from './flow.ts';
export {
  decodeTranslated,
  type FlowTraffic,
  listenToTranslated,
  type TranslatedEvents,
  type TranslatedFlow,
  translatedListing,
} from './translated.ts';
export { UNANSWERED_BOUNDS, type UnansweredBounds, type UnansweredWatch, watchUnanswered } from './unanswered.ts';
export { type FlowEvent, watchFlows } from './watch-flows.ts';

export { type ShowTraceOptions, showTrace } from './show-trace.ts';
export type { TraceReport } from './trace-report.ts';

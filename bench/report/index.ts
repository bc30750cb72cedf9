export { type Figure, HOLDS_THE_LINE, oursAtMost, ratioAtLeast, ratioAtMost, type Target } from './figure.ts';
export { report, reports } from './print.ts';
export { inTurns, median, pairedTurns, percentile } from './statistics.ts';

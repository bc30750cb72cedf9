/** The table of a live trace, in family inet. It belongs to the socket that made it, and vanishes with it. */
export const TRACE_TABLE = 'nodeplane-trace';

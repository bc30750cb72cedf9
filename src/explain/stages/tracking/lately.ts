import type { Knowledge } from '../../knowledge/index.ts';
import type { NodeView } from '../../node/index.ts';

/** What connection tracking has counted of late. */
export interface CountedLately {
  /** In so many last seconds. */
  readonly seconds: number;
  /** By how much a counter rose; 0 for one that this kernel has not. */
  by(name: string): number;
}

/** Counters since the namespace was made say nothing of now: what the agent saw a while ago is taken off. Undefined: it saw none. */
export function countedLately({ trackingBefore: before }: Knowledge, node: NodeView): CountedLately | undefined {
  if (!before) return undefined;
  const { counters } = node.tracking;
  return {
    seconds: Math.max(1, Math.round(before.secondsAgo)),
    by: (name) => Math.max(0, (counters[name] ?? 0) - (before.counters[name] ?? 0)),
  };
}

import type { Outcome } from './protocol.ts';

/** How many connections each server answered, and how many ended otherwise, by kind. */
export interface Tally {
  readonly answers: Readonly<Record<string, number>>;
  readonly failures: Readonly<Record<string, number>>;
  /** The source addresses the servers saw. */
  readonly sources: ReadonlySet<string>;
}

/** Counts outcomes. */
export function tally(outcomes: readonly Outcome[]): Tally {
  const answers: Record<string, number> = {};
  const failures: Record<string, number> = {};
  const sources = new Set<string>();
  for (const outcome of outcomes) {
    if (outcome.kind === 'answered') {
      answers[outcome.by] = (answers[outcome.by] ?? 0) + 1;
      sources.add(outcome.source);
    } else {
      failures[outcome.kind] = (failures[outcome.kind] ?? 0) + 1;
    }
  }
  return { answers, failures, sources };
}

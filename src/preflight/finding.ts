/**
 * What a check can come to: nothing to do; to be known before going on; the agent, or Services, would not work; it could not be
 * told; and there was nothing to look at.
 */
export const STATES = ['ok', 'warning', 'fails', 'unknown', 'skipped'] as const;
export type State = (typeof STATES)[number];

/** What one check found. */
export interface Outcome {
  readonly state: State;
  /** What is so, in one sentence. May hold names that others chose. */
  readonly message: string;
  /** What to do about it; missing where there is nothing to do. */
  readonly remedy?: string;
}

/** A line of the report. */
export interface Finding extends Outcome {
  /** `rules.firewall`: its group, and its name in it. */
  readonly check: string;
}

/** There is nothing to do. */
export function ok(message: string): Outcome {
  return { state: 'ok', message };
}

/** To be known before going on. */
export function warning(message: string, remedy: string): Outcome {
  return { state: 'warning', message, remedy };
}

/** The agent, or Services, would not work. */
export function fails(message: string, remedy: string): Outcome {
  return { state: 'fails', message, remedy };
}

/** It could not be looked at, although it should be. */
export function unknown(message: string, remedy?: string): Outcome {
  return { state: 'unknown', message, ...(remedy !== undefined && { remedy }) };
}

/** There is nothing to look at, as the agent is configured or as nothing was given to look at. */
export function skipped(message: string): Outcome {
  return { state: 'skipped', message };
}

/** How many of a list are named. */
const NAMED = 3;

/** The first few of a list, and how many more there are: `a, b, c and 7 more`. */
export function firstFew(names: readonly string[]): string {
  const more = names.length - NAMED;
  return `${names.slice(0, NAMED).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

/** What was read of the rules is in order, but not all could be read. */
export function orUnread(outcome: Outcome, unread: readonly string[]): Outcome {
  return outcome.state === 'ok' && unread.length > 0
    ? unknown(`not all rules can be read: ${unread[0]}`, 'run it as root, with the programs of the iptables package')
    : outcome;
}

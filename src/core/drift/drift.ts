import { NodeplaneError } from '../errors.ts';

/** One difference between what is meant to be in the kernel and what it holds. */
export interface Drift {
  /** What: `nat chain KUBE-SVC-…`, `jump nat PREROUTING -> KUBE-SERVICES`, `route 10.244.3.0/24`. */
  readonly object: string;
  readonly difference: 'missing' | 'changed' | 'unexpected';
  /** What is meant, and what the kernel holds in its place, in lines as the kernel's tools print them; at most DRIFT_LINES. */
  readonly ours?: readonly string[];
  readonly theirs?: readonly string[];
}

/** One thing that lies in the kernel as it is meant to, or not: Services of one family, the routes, the rules of pods. */
export interface ComparedPart {
  /** `Services IPv4`, `routes IPv6`, `rules of pods`. */
  readonly name: string;
  /** Reads the kernel and changes nothing. Rejects with the reason when it cannot be told. */
  compare(): Promise<readonly Drift[]>;
  /** Makes the kernel what is meant; resolves when that is done, rejects with why it could not be. */
  repair(): Promise<void>;
}

/** Lines of one side of a difference. */
const DRIFT_LINES = 20;

/** In a line: `missing: route 10.244.3.0/24`. */
export function driftText({ object, difference }: Drift): string {
  return `${difference}: ${object}`;
}

/**
 * The lines of each side that the other lacks; where both have the same ones in another order, all of them.
 *
 * @param ours what is meant
 * @param theirs what the kernel holds
 */
export function driftLines(
  ours: readonly string[],
  theirs: readonly string[],
): Required<Pick<Drift, 'ours' | 'theirs'>> {
  const missing = without(ours, theirs);
  const strange = without(theirs, ours);
  const moved = missing.length === 0 && strange.length === 0;
  return { ours: bounded(moved ? ours : missing), theirs: bounded(moved ? theirs : strange) };
}

/**
 * What a comparison says that cannot be made yet.
 *
 * @param what would be compared: `routes IPv6`
 */
export function nothingToCompare(what: string, reason: string): NodeplaneError {
  return new NodeplaneError('ERR_DIFF', `Cannot compare ${what}: ${reason}`);
}

function without(lines: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const line of others) counts.set(line, (counts.get(line) ?? 0) + 1);
  return lines.filter((line) => {
    const count = counts.get(line) ?? 0;
    if (count > 0) counts.set(line, count - 1);
    return count === 0;
  });
}

function bounded(lines: readonly string[]): readonly string[] {
  if (lines.length <= DRIFT_LINES) return lines;
  return [...lines.slice(0, DRIFT_LINES - 1), `… and ${lines.length - DRIFT_LINES + 1} more`];
}

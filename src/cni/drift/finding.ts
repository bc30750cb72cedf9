import { type Drift, driftLines } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';

/** Mends one difference, by a NETLINK_ROUTE socket of the node. Throws errors of the kernel. */
export type Mend = (host: Netlink) => void;

/** One thing that is otherwise than its ADD made it. */
export interface Difference {
  /** What the kernel holds, and what is meant, in words of `ip` or as `name=value`; left out: nothing. */
  readonly theirs?: string | undefined;
  readonly ours?: string | undefined;
  /** Undefined: no repair mends it. */
  readonly mend?: Mend | undefined;
}

/** A difference as it is told, and what mends it. */
export interface Finding {
  readonly drift: Drift;
  readonly mends: readonly Mend[];
  /** The link of a pod is gone, as it is in the middle of a DEL. */
  readonly isGone?: boolean;
}

/** What differs of one object; nothing when nothing does. */
export function findingsOf(object: string, differences: readonly Difference[]): Finding[] {
  if (differences.length === 0) return [];
  const lines = (side: 'ours' | 'theirs') => differences.flatMap((difference) => difference[side] ?? []);
  const drift: Drift = { object, difference: 'changed', ...driftLines(lines('ours'), lines('theirs')) };
  return [{ drift, mends: differences.flatMap(({ mend }) => mend ?? []) }];
}

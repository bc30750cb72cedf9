import { formatIpPort } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Walk } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { isHeardAt } from '../sockets/hearing.ts';

// Packets that rules leave to this node itself, where a process may listen or not.

/** Where a packet ends up; without `goal` that is not known. */
interface Way {
  readonly result: Walk;
  readonly goal: Goal | undefined;
}

/**
 * Whether a packet to a number that is no NodePort stays for this node, and no process listens there. What drops it
 * besides is not why.
 */
export function isNobodys({ target }: Asked, { result, goal }: Way, node: NodeView): boolean {
  if (result.end.kind === 'cannot tell' || goal?.address !== formatIpPort(target.ip, target.port)) return false;
  return !isHeardAt(goal, target.protocol, node);
}

/** Whether a packet for a Service ends at a process of this node that is no endpoint: a cache of names in front of it, a redirect. */
export function isTakenHere(
  { target }: Asked,
  wanted: ReadonlySet<string>,
  { result, goal }: Way,
  node: NodeView,
): boolean {
  if (result.end.kind !== 'delivered' || !goal || wanted.has(goal.address)) return false;
  return isHeardAt(goal, target.protocol, node);
}

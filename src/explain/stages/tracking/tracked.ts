import type { Branch } from '../../choices.ts';
import type { NodeView } from '../../node/index.ts';
import type { Walk } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { answerOf, flowTo, nextOf, originOf } from '../later/later-walks.ts';
import { isUnseen } from '../links/bridge.ts';

/**
 * Whether a connection to a goal needs an entry of connection tracking: not as frames of a bridge that shows them to no
 * rules, and not where rules keep all packets out, answers too. A packet that is let in alone gets an entry of its own,
 * or is dropped (nf_conntrack_in and resolve_normal_ct, net/netfilter/nf_conntrack_core.c).
 */
export function isTracked(asked: Asked, goal: Goal, node: NodeView): boolean {
  if (isUnseen(asked, goal, node)) return false;
  if (goal.untracked !== true) return true;
  const isTcp = asked.target.protocol === 'TCP';
  const flow = flowTo(asked, goal, node);
  const origin = originOf(goal, node) ?? 'this host';
  const answers = (['first', 'later'] as const).flatMap((which) =>
    answerOf(asked, goal, { which, isInvalid: isTcp && which === 'first' }, flow, origin, node),
  );
  return ![...answers, ...nextOf(asked, flow, { which: 'later', isInvalid: false }, node)].every(isKeptOut);
}

/** Whether rules kept a packet out of connection tracking. */
export function isKeptOut({ result }: Branch<Walk>): boolean {
  return result.packet.connection === 'untracked';
}

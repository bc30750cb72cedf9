import type { NodeView } from '../../node/index.ts';
import type { Asked } from '../asked.ts';
import { isOurs, placeOf, showing } from '../place.ts';
import type { Finding } from '../report.ts';
import { isHeardAt } from '../sockets/hearing.ts';
import { keepsOut } from './doing.ts';
import type { Way } from './ways.ts';

/**
 * Why nothing translates packets of a Service: rules of somebody else keep them out of connection tracking, as a cache
 * of names on the node wants it for the addresses it has (NodeLocal DNSCache: cmd/node-cache/app/cache_app.go of
 * kubernetes/dns).
 *
 * @returns undefined where there is no such rule
 */
export function keptOutOfTracking(asked: Asked, ways: readonly Way[], node: NodeView): Finding | undefined {
  const { target, knowledge } = asked;
  const way = ways.find(({ goal }) => goal?.untracked === true);
  const step = way?.result.steps.find((one) => keepsOut(one) && !isOurs(one, knowledge.mode));
  if (!way?.goal || !step) return undefined;
  const isForNode = way.result.end.kind === 'delivered' && !isHeardAt(way.goal, target.protocol, node);
  const here = isForNode ? '; this node has the address itself, and no process listens there' : '';
  const text = `${placeOf(step)} keeps packets to ${way.goal.address} out of connection tracking, so that nothing translates them${here}`;
  return { code: 'foreign-drop', text, remedy: [showing(step)] };
}

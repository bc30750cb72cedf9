import { formatIp, ipEquals } from '../../../core/index.ts';
import { type LocalPod, type NodeView, showsToRules } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';

// Frames of a bridge that pods hang on: who routes them, and whether rules see them.

/** Whether answers are frames of the bridge that both pods hang on: they are translated as they pass, and not routed. */
export function isBridged(
  { client }: Asked,
  { ip, masqueraded }: Goal,
  pod: LocalPod | undefined,
  node: NodeView,
): boolean {
  if (client.kind !== 'pod' || masqueraded !== false || pod?.seenAs?.kind !== 'bridge') return false;
  if (client.pod.seenAs?.index !== pod.seenAs.index) return false;
  const out = node.routeIn(pod, { destination: client.ip, source: ip });
  return out.kind === 'route' && out.route.gateway === undefined;
}

/** Whether packets of a pod to another's own address are frames of the bridge that both hang on, which nobody routes. */
export function isSwitched({ client, target }: Asked, { ip }: Pick<Goal, 'ip'>, node: NodeView): boolean {
  if (client.kind !== 'pod' || client.pod.seenAs?.kind !== 'bridge' || !ipEquals(ip, target.ip)) return false;
  const { index } = client.pod.seenAs;
  if (!node.podsAt(formatIp(ip)).some(({ seenAs }) => seenAs?.index === index)) return false;
  const out = node.routeIn(client.pod, { destination: ip, source: client.ip });
  return out.kind === 'route' && out.route.gateway === undefined;
}

/** Whether no rules see what a pod sends to this address: frames of a bridge that it switches, and shows to none. */
export function isUnseen(asked: Asked, to: Pick<Goal, 'ip'>, node: NodeView): boolean {
  const { client } = asked;
  return isSwitched(asked, to, node) && client.kind === 'pod' && !showsToRules(client.pod.seenAs!, to.ip, node);
}

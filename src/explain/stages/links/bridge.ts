import { formatIp, type IpAddress, ipEquals } from '../../../core/index.ts';
import type { Link } from '../../../netlink/route/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';

// Frames of a bridge that pods hang on: who routes them, and whether rules see them.

/** Whether rules see the frames of a bridge (br_nf_pre_routing, net/bridge/br_netfilter_hooks.c): all bridges show theirs, or this one does. */
export function showsToRules(bridge: Link, ip: IpAddress, node: NodeView): boolean {
  const ofAll = node.sysctl(bridgeSetting(ip));
  return ofAll === '1' || (ofAll !== undefined && bridge.showsToRules.includes(ip.family));
}

/** Not there without br_netfilter. */
export function bridgeSetting({ family }: IpAddress): string {
  return `net/bridge/bridge-nf-call-${family === 'IPv4' ? 'iptables' : 'ip6tables'}`;
}

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

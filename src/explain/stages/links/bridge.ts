import { formatIp, type IpAddress, ipEquals, settingName } from '../../../core/index.ts';
import type { Link } from '../../../netlink/route/index.ts';
import { RTN_UNICAST } from '../../../netlink/uapi/index.ts';
import { bridgeSetting, type LocalPod, type NodeView, showsToRules } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Finding } from '../report.ts';

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
export function isSwitched(asked: Asked, goal: Pick<Goal, 'ip'>, node: NodeView): boolean {
  const { client } = asked;
  if (client.kind !== 'pod') return false;
  const isBeside = node.podsAt(formatIp(goal.ip)).some(({ seenAs }) => seenAs?.index === client.pod.seenAs?.index);
  return isBeside && isSentOnBridge(asked, goal, node);
}

/** Whether a pod looks for an address on its bridge, whoever has it there: where that is not this node, nobody routes what it sends. */
export function isSentOnBridge({ client, target }: Asked, { ip }: Pick<Goal, 'ip'>, node: NodeView): boolean {
  if (client.kind !== 'pod' || client.pod.seenAs?.kind !== 'bridge' || !ipEquals(ip, target.ip)) return false;
  const out = node.routeIn(client.pod, { destination: ip, source: client.ip });
  return out.kind === 'route' && out.route.type === RTN_UNICAST && out.route.gateway === undefined;
}

/** What is wrong where two pods are on one bridge whose frames no rules see, and answers of `address` had to be translated back. */
export function bridgeUnseen(address: string, { name }: Pick<Link, 'name'>, ip: IpAddress, node: NodeView): Finding {
  const path = bridgeSetting(ip.family);
  const value = node.sysctl(path) ?? 'not there (br_netfilter is not loaded)';
  const setting = settingName(path);
  return {
    code: 'bridge-nf',
    text: `both pods are on ${name}, and ${setting} is ${value}: answers of ${address} are not translated back`,
    remedy: [`modprobe br_netfilter; sysctl -w ${setting}=1`],
  };
}

/** Whether no rules see what a pod sends to this address: frames of a bridge that it switches, and shows to none. */
export function isUnseen(asked: Asked, to: Pick<Goal, 'ip'>, node: NodeView): boolean {
  const { client } = asked;
  return isSwitched(asked, to, node) && client.kind === 'pod' && !showsToRules(client.pod.seenAs!, to.ip, node);
}

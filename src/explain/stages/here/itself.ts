import { formatIpPort } from '../../../core/index.ts';
import { LOOPBACK_IFINDEX, RTN_LOCAL } from '../../../netlink/uapi/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked, Goal, Target } from '../asked.ts';
import { runIn } from '../commands.ts';
import type { Finding, Report } from '../report.ts';

// What a namespace sends to an address of its own: it goes by its loopback link, and nothing else is met.

/** Where packets go that a pod sends to an address of its own, be it a Service's too, so that they stay in it; undefined: others. */
export function lookAtItself({ client, target }: Asked, node: NodeView, report: Report): Goal | undefined {
  const { ip, port } = target;
  if (client.kind !== 'pod' || !isItself(client.pod, target, node)) return undefined;
  const address = formatIpPort(ip, port);
  for (const stage of ['rules', 'route'] as const) report.stage(stage, 'ok', 'the pod sends to itself');
  const down = loopbackDown(node, client.pod.netns);
  if (down) report.fail('link', down);
  else report.stage('link', 'ok', `lo of the pod ${client.pod.ip}`);
  return { address, ip, port, masqueraded: false, source: ip, byIpvs: false };
}

/** Whether what a pod sends there stays in it. */
export function isItself(pod: LocalPod, { ip }: Target, node: NodeView): boolean {
  const way = node.routeIn(pod, { destination: ip, source: pod.address });
  return way.kind === 'route' && way.route.type === RTN_LOCAL && way.route.outInterface === LOOPBACK_IFINDEX;
}

/** Why nothing that is sent to an own address arrives. @param netns of a pod. @default the node's */
export function loopbackDown(node: NodeView, netns?: string): Finding | undefined {
  if (node.isLoopbackUp(netns)) return undefined;
  const text = `lo of this ${netns ? 'pod' : 'node'} is down, by which it sends to its own addresses`;
  return { code: 'link-down', text, remedy: [runIn(netns, 'ip link set lo up')] };
}

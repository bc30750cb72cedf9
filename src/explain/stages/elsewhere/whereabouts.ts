import { formatIp } from '../../../core/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { asking, onNode, showingService, whoHas } from '../commands.ts';
import { nodeOf } from '../peer.ts';

export interface Whereabouts {
  /** `is on node-2` */
  readonly is: string;
  /** `node-2` */
  readonly who: string;
  /** Commands that show more. */
  readonly show: readonly string[];
}

/** What is known of where an endpoint is that was not found here. */
export function whereabouts(asked: Asked, goal: Goal): Whereabouts {
  const { target, knowledge } = asked;
  const ip = formatIp(goal.ip);
  const endpoint = target.service?.port.endpoints.find((one) => one.ip === ip);
  const where = nodeOf(asked, goal);
  const who = where ?? 'its node';
  const nobody = 'and no pod with this address was found';
  if (endpoint?.here) return { is: `runs here by its slice, ${nobody}`, who, show: whoHas(ip, knowledge) };
  if (where === knowledge.node.name) {
    return { is: `is of the range of this node's pods, ${nobody}`, who, show: whoHas(ip, knowledge) };
  }
  const show = [onNode(where, commandThere(asked, goal))];
  if (where !== undefined) return { is: `is on ${where}`, who, show };
  if (endpoint) return { is: 'is on a node that its slice does not name', who, show };
  const { destination } = knowledge;
  if (destination.kind === 'address' && destination.proxiedOf !== null) {
    const is = `is of the load balancer of ${destination.proxiedOf}, which takes connections itself and makes its own to nodes or pods (ipMode Proxy)`;
    return { is, who: 'the load balancer', show: [showingService(destination.proxiedOf)] };
  }
  const isFurther = target.service?.port.further.cluster.some((one) => one.ip === ip);
  if (isFurther) return { is: 'is one of too many endpoints to tell their nodes', who, show };
  return { is: 'is of no Service, pod or node that is known here', who: 'it', show: [`ip route get ${ip}`] };
}

/** An agent there knows nothing of us: it is asked as we would be for somebody outside. */
function commandThere({ target, client, knowledge }: Asked, goal: Goal): string {
  return asking(goal.address, { from: formatIp(goal.source ?? client.ip), protocol: target.protocol }, knowledge);
}

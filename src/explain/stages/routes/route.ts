import { formatCidr, formatIp, type IpAddress } from '../../../core/index.ts';
import type { RouteAnswer } from '../../../netlink/route/index.ts';
import { RTN_ANYCAST, RTN_LOCAL, RTN_UNICAST } from '../../../netlink/uapi/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { refusedFrom } from '../here/refused-from.ts';
import { isSwitched } from '../links/bridge.ts';
import { detourOf, flowOf, refusedByPod, untakenByPod } from '../pods/routes.ts';
import type { Finding, Report } from '../report.ts';
import { besidePods, markedWith, routeRemedy } from './astray.ts';
import { lookAtRouteBack } from './back.ts';
import { forwardingOff, notForwarded, staysInBridge } from './forwarding.ts';

/** Asks the kernel for the way to each endpoint and back, as it would forward the packet. */
export function lookAtRoutes(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const { client, target } = asked;
  if (client.kind === 'pod') {
    const flow = flowOf(target, { destinationPort: target.port });
    const isSentOn = goals.some(({ ip }) => !node.isOwnAddress(formatIp(ip)));
    const packets = { source: client.ip, destination: target.ip, flow, isSentOn };
    const refused = refusedByPod(client.pod, packets, node, 'leave it by another link than');
    if (refused?.isLost) {
      report.fail('route', { code: 'pod-route', text: refused.text, remedy: refused.remedy });
      return;
    }
    if (refused) report.cannotTell('route', refused.text);
    const answers = { source: target.ip, destination: client.ip, flow: flowOf(target, { sourcePort: target.port }) };
    const untaken = untakenByPod(client.pod, answers, node);
    if (untaken) {
      report.fail('route', { code: 'way-back', ...untaken });
      return;
    }
  }
  const told = new Set<string>();
  for (const goal of goals) {
    const text = formatIp(goal.ip);
    if (told.has(text)) continue;
    told.add(text);
    if (isSwitched(asked, goal, node))
      report.stage('route', 'ok', `${text} is on the bridge of the client: not routed`);
    else lookAtWay(asked, goal, node, report);
    lookAtRouteBack(asked, goal, node, report);
  }
}

function lookAtWay(asked: Asked, goal: Goal, node: NodeView, report: Report): void {
  const { client, knowledge } = asked;
  const { ip } = goal;
  const refused = goal.byIpvs ? refusedHere(asked, node) : undefined;
  if (refused) {
    report.failEndpoint('route', goal.address, refused);
    return;
  }
  const inInterface = goal.byIpvs ? undefined : inInterfaceOf(client);
  const { mark } = goal;
  const flow = flowOf(asked.target, { destinationPort: goal.port });
  const plain = node.route({ destination: ip, mark, flow });
  // IPVS sends on of its own, whoever the client is (__ip_vs_get_out_rt): a question with a source would be one about the node's own packets.
  const source = goal.routedFrom ?? client.ip;
  const answer = goal.byIpvs ? plain : node.route({ destination: ip, source, inInterface, mark, flow });
  if (answer.kind === 'route' && answer.route.type === RTN_ANYCAST) {
    const text = `${formatIp(ip)} has a route of type anycast: whether this node takes the packets itself was not looked at`;
    report.cannotTellEndpoint('route', goal.address, text);
    return;
  }
  if (answer.kind === 'refused' || !isDelivering(answer.route.type)) {
    report.failEndpoint('route', goal.address, refusedWay(answer, plain, goal, client, node));
    return;
  }
  const [pod] = node.podsAt(formatIp(ip));
  if (pod && answer.route.type === RTN_LOCAL) {
    const text = `this node takes what is sent to its pod ${pod.ip} itself, by a local route: whether a process here answers was not looked at`;
    report.cannotTellEndpoint('route', goal.address, text);
    return;
  }
  if (answer.route.type !== RTN_LOCAL && node.isOwnAddress(formatIp(ip))) {
    const text = `this node has the address ${formatIp(ip)} and no local route to it: who gets what is sent there was not looked at`;
    report.cannotTellEndpoint('route', goal.address, text);
    return;
  }
  const elsewhere = besidePod(asked, goal, answer.route.outInterface, node);
  if (elsewhere) {
    report.failEndpoint('route', goal.address, elsewhere);
    return;
  }
  const staysOnLink = staysInBridge(inInterface, answer.route.outInterface, ip, node);
  const off = staysOnLink || node.isOwnAddress(formatIp(ip)) ? undefined : forwardingOff(ip, inInterface, node);
  if (off !== undefined) {
    // A lookup of IPv6 does not look at it.
    report.failEndpoint('route', goal.address, notForwarded(off));
    return;
  }
  const matched = node.route({ destination: ip, mark, flow, matched: true });
  const { route } = matched.kind === 'route' ? matched : answer;
  const detour = pod && (detourOf(answer.route, ip) ?? detourOf(route, ip));
  if (detour) report.cannotTellEndpoint('route', goal.address, `this node's packets to its pod ${pod.ip} ${detour}`);
  const link = node.link(route.outInterface)?.name ?? `link ${route.outInterface}`;
  const isDefault = route.destination.prefixLength === 0;
  const isLocal = route.type === RTN_LOCAL;
  const isPod =
    knowledge.destination.kind === 'service' && !node.isOwnAddress(formatIp(ip)) && !isNodeAddress(knowledge, ip);
  if (isDefault && isPod && knowledge.routes) {
    const text = `${formatIp(ip)} is reached by the default route alone: the route to its node is missing`;
    report.failEndpoint('route', goal.address, { code: 'no-peer-route', text, remedy: ['nodeplane routes'] });
  } else {
    if (isDefault && isPod)
      report.warn(
        'no-peer-route',
        `${formatIp(ip)} leaves by the default route: right only where the network knows pods`,
      );
    const by = route.gateway ? ` via ${formatIp(route.gateway)}` : '';
    report.stage(
      'route',
      'ok',
      isLocal ? `${formatIp(ip)} is this node` : `${formatCidr(route.destination)}${by} dev ${link}`,
    );
  }
}

/** A pod of this node whose pair is not where its packets are sent. */
function besidePod({ target }: Asked, { ip, mark }: Goal, outInterface: number, node: NodeView): Finding | undefined {
  const beside = besidePods(node.podsAt(formatIp(ip)), outInterface, target, node);
  if (!beside) return undefined;
  const { pod, own, link } = beside;
  const text = `${markedWith(mark, 'packets')} to ${pod} leave by ${link.name}, and the pod hangs on ${own}`;
  return link.kind === 'bridge'
    ? { code: 'link-down', text, remedy: [`ip link set ${own} master ${link.name}`] }
    : { code: 'no-peer-route', text, remedy: routeRemedy(pod, mark) };
}

function isNodeAddress({ node }: Asked['knowledge'], ip: IpAddress): boolean {
  return node.addresses.includes(formatIp(ip));
}

function isDelivering(type: number): boolean {
  return type === RTN_UNICAST || type === RTN_LOCAL;
}

/** Undefined: the packet is this node's own. */
function inInterfaceOf(client: Asked['client']): number | undefined {
  if (client.kind === 'node') return undefined;
  return client.kind === 'outside' ? client.link.index : client.pod.seenAs!.index;
}

/** What the kernel has against packets of the client to the address asked for, where that is this node's own. */
function refusedHere({ client, target }: Asked, node: NodeView): Finding | undefined {
  const inInterface = inInterfaceOf(client);
  if (inInterface === undefined) return undefined;
  const answer = node.route({ destination: target.ip, source: client.ip, inInterface });
  if (answer.kind === 'route') return undefined;
  return refusedFrom({ from: client.ip, to: target.ip, inInterface, code: 'no-peer-route' }, answer.errno, node);
}

/** An error has several causes; they are told apart by what the kernel says without the incoming interface, and by settings. */
function refusedWay(
  answer: RouteAnswer,
  plain: RouteAnswer,
  { ip, mark }: Goal,
  client: Asked['client'],
  node: NodeView,
): Finding {
  const to = formatIp(ip);
  const marked = mark === undefined ? '' : ` mark ${mark}`;
  const errno = answer.kind === 'refused' ? answer.errno : `a route of type ${answer.route.type}`;
  if (plain.kind === 'refused' || !isDelivering(plain.route.type)) {
    const text = `there is no route to ${to}${marked} on this node (${plain.kind === 'refused' ? plain.errno : errno})`;
    return { code: 'no-peer-route', text, remedy: [`ip route get ${to}${marked}`, 'nodeplane routes'] };
  }
  const off = forwardingOff(ip, inInterfaceOf(client), node);
  if (off !== undefined) {
    return notForwarded(off);
  }
  const packets = { from: client.ip, to: ip, inInterface: inInterfaceOf(client), code: 'no-peer-route' } as const;
  return refusedFrom(packets, errno, node);
}

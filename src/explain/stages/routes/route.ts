import { formatCidr, formatIp, type IpAddress, shellWord } from '../../../core/index.ts';
import type { Route, RouteAnswer } from '../../../netlink/route/index.ts';
import { RTN_ANYCAST, RTN_BROADCAST, RTN_LOCAL, RTN_UNICAST } from '../../../netlink/uapi/index.ts';
import { hasPod } from '../../knowledge/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { showingNoRoute } from '../commands.ts';
import { refusedFrom } from '../here/refused-from.ts';
import { isSwitched } from '../links/bridge.ts';
import { nodeOf } from '../peer.ts';
import { detourOf, flowOf, otherSource, refusedByPod, untakenByPod } from '../pods/routes.ts';
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
    const doubt = refused?.text ?? otherSource(packets, client.pod, node);
    if (doubt !== undefined) report.cannotTell('route', doubt);
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
    if (isToAll(asked, goal, node, report)) continue;
    if (isSwitched(asked, goal, node))
      report.stage('route', 'ok', `${text} is on the bridge of the client: not routed`);
    else lookAtWay(asked, goal, node, report);
    lookAtRouteBack(asked, goal, node, report);
  }
}

function lookAtWay(asked: Asked, goal: Goal, node: NodeView, report: Report): void {
  const { client } = asked;
  const { ip, mark, address } = goal;
  const refused = goal.byIpvs ? refusedHere(asked, node) : undefined;
  if (refused) {
    report.failEndpoint('route', address, refused);
    return;
  }
  const inInterface = goal.byIpvs ? undefined : inInterfaceOf(client);
  const flow = flowOf(asked.target, { destinationPort: goal.port });
  const plain = node.route({ destination: ip, mark, flow });
  // IPVS sends on of its own, whoever the client is (__ip_vs_get_out_rt): a question with a source would be one about
  // the node's own packets.
  const source = goal.routedFrom ?? client.ip;
  const answer = goal.byIpvs ? plain : node.route({ destination: ip, source, inInterface, mark, flow });
  const doubt = answer.kind === 'route' ? takenBySomebody(answer.route, ip, node) : undefined;
  if (doubt !== undefined) {
    report.cannotTellEndpoint('route', address, doubt);
    return;
  }
  if (answer.kind === 'refused' || !isDelivering(answer.route.type)) {
    report.failEndpoint('route', address, refusedWay(answer, plain, goal, asked, node));
    return;
  }
  const { outInterface } = answer.route;
  const finding = besidePod(asked, goal, outInterface, node) ?? notSentOn(ip, { inInterface, outInterface }, node);
  if (finding) report.failEndpoint('route', address, finding);
  else {
    const matched = node.route({ destination: ip, mark, flow, matched: true });
    tellRoute(asked, goal, answer.route, matched.kind === 'route' ? matched.route : answer.route, node, report);
  }
}

/** Why it is not known who takes packets to an address, by the route that they have; undefined: it is. */
function takenBySomebody({ type }: Route, ip: IpAddress, node: NodeView): string | undefined {
  const text = formatIp(ip);
  if (type === RTN_ANYCAST)
    return `${text} has a route of type anycast: whether this node takes the packets itself was not looked at`;
  const [pod] = node.podsAt(text);
  if (pod && type === RTN_LOCAL)
    return `this node takes what is sent to its pod ${pod.ip} itself, by a local route: whether a process here answers was not looked at`;
  if (type === RTN_UNICAST && node.isOwnAddress(text))
    return `this node has the address ${text} and no local route to it: who gets what is sent there was not looked at`;
  return undefined;
}

/** Whether this node sends packets on that others sent: a lookup of IPv6 does not look at that. */
function notSentOn(
  ip: IpAddress,
  { inInterface, outInterface }: { readonly inInterface: number | undefined; readonly outInterface: number },
  node: NodeView,
): Finding | undefined {
  if (node.isOwnAddress(formatIp(ip)) || staysInBridge(inInterface, outInterface, ip, node)) return undefined;
  const off = forwardingOff(ip, inInterface, node);
  return off === undefined ? undefined : notForwarded(off, node);
}

/** @param matched the route as it was written, where `route` is what came of it */
function tellRoute(asked: Asked, goal: Goal, route: Route, matched: Route, node: NodeView, report: Report): void {
  const { knowledge } = asked;
  const { ip, address } = goal;
  const text = formatIp(ip);
  const [pod] = node.podsAt(text);
  const detour = pod && (detourOf(route, ip) ?? detourOf(matched, ip));
  if (detour) report.cannotTellEndpoint('route', address, `this node's packets to its pod ${pod.ip} ${detour}`);
  if (matched.destination.prefixLength === 0 && !node.isOwnAddress(text) && isPodElsewhere(asked, goal)) {
    if (!knowledge.routes) {
      report.warn('no-peer-route', `${text} leaves by the default route: right only where the network knows pods`);
    } else if (!asked.probe) {
      // A router may know pods all the same: an attempt tells.
      const missing = `${text} is reached by the default route alone: the route to its node is missing`;
      report.cannotTellEndpoint('route', address, `${missing}, unless the network knows pods`);
      report.askThere(asked.knowledge.commands.routes);
    }
  }
  const link = node.link(matched.outInterface)?.name ?? `link ${matched.outInterface}`;
  const by = matched.gateway ? ` via ${formatIp(matched.gateway)}` : '';
  const isLocal = matched.type === RTN_LOCAL;
  const way = isLocal ? `${text} is this node` : `${formatCidr(matched.destination)}${by} dev ${link}`;
  report.stage('route', 'ok', way);
}

/**
 * Whether an address is a pod's on another node, to which there should be a route: nodes themselves, and others, are
 * reached by the default route.
 */
function isPodElsewhere(asked: Asked, goal: Goal): boolean {
  const { node, others } = asked.knowledge;
  const text = formatIp(goal.ip);
  if ([node, ...others].some(({ addresses }) => addresses.includes(text))) return false;
  const home = nodeOf(asked, goal);
  if (home !== undefined) return home !== node.name;
  return others.some((one) => hasPod(one, goal.ip));
}

/** A pod of this node whose pair is not where its packets are sent. */
function besidePod({ target }: Asked, { ip, mark }: Goal, outInterface: number, node: NodeView): Finding | undefined {
  const beside = besidePods(node.podsAt(formatIp(ip)), outInterface, target, node);
  if (!beside) return undefined;
  const { pod, own, isPlugged, link } = beside;
  const text = `${markedWith(mark, 'packets')} to ${pod} leave by ${link.name}, and the pod hangs on ${own}`;
  return link.kind === 'bridge' && !isPlugged
    ? { code: 'link-down', text, remedy: [`ip link set ${shellWord(own)} master ${shellWord(link.name)}`] }
    : { code: 'no-peer-route', text, remedy: routeRemedy(ip, mark) };
}

/** Whether all hosts of a link get what is sent there: connections are made with one alone, datagrams are answered by whoever likes to. */
function isToAll({ target }: Asked, { ip, address }: Goal, node: NodeView, report: Report): boolean {
  const way = node.route({ destination: ip });
  if (way.kind === 'refused' || way.route.type !== RTN_BROADCAST) return false;
  const text = `${formatIp(ip)} is a broadcast address`;
  if (target.protocol === 'UDP') report.doubt(`${text}: who answers is not known`, 'route');
  else
    report.failEndpoint('route', address, {
      code: 'no-peer-route',
      text: `${text}, with which nobody is connected`,
      remedy: [`ip route get ${formatIp(ip)}`],
    });
  return true;
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
  { client, knowledge }: Asked,
  node: NodeView,
): Finding {
  const to = formatIp(ip);
  const marked = mark === undefined ? '' : ` mark ${mark}`;
  const errno = answer.kind === 'refused' ? answer.errno : `a route of type ${answer.route.type}`;
  if (plain.kind === 'refused' || !isDelivering(plain.route.type)) {
    const text = `there is no route to ${to}${marked} on this node (${plain.kind === 'refused' ? plain.errno : errno})`;
    const own = knowledge.routes ? [knowledge.commands.routes] : [];
    const [routes, rules] = showingNoRoute(ip);
    return {
      code: 'no-peer-route',
      text,
      remedy: mark === undefined ? [routes, ...own, rules] : [rules, routes, ...own],
    };
  }
  const off = forwardingOff(ip, inInterfaceOf(client), node);
  if (off !== undefined) return notForwarded(off, node);
  const packets = { from: client.ip, to: ip, inInterface: inInterfaceOf(client), code: 'no-peer-route' } as const;
  return refusedFrom(packets, errno, node);
}

import { formatCidr, formatIp, type IpAddress, ipEquals } from '../../core/index.ts';
import type { Link, Route, RouteAnswer } from '../../netlink/route/index.ts';
import { RTN_ANYCAST, RTN_LOCAL, RTN_UNICAST } from '../../netlink/uapi/index.ts';
import type { CauseCode } from '../answer/index.ts';
import type { LocalPod, NodeView } from '../node/index.ts';
import type { Asked, Goal } from './asked.ts';
import { refusedFrom } from './here/refused-from.ts';
import { answerOf, flowTo, markOf, originOf } from './later-walks.ts';
import { isBridged, isSwitched, showsToRules } from './links/bridge.ts';
import { detourOf, flowOf, refusedByPod, untakenByPod } from './pods/routes.ts';
import type { Finding, Report } from './report.ts';

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
    lookAtWayBack(asked, goal, node, report);
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
  const [pod] = node.podsAt(formatIp(ip));
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

function markedWith(mark: number | undefined, who: string): string {
  return mark === undefined ? who : `${who}, marked 0x${mark.toString(16)},`;
}

function routeRemedy(to: string, mark: number | undefined): readonly string[] {
  return ['ip rule', `ip route get ${to}${mark ? ` mark ${mark}` : ''}`];
}

/** Pods none of which has its pair where a link leads: the address, the pair's end here, and the link. Undefined: one has. */
function besidePods(
  pods: readonly LocalPod[],
  outInterface: number,
  target: Asked['target'],
  node: NodeView,
): { readonly pod: string; readonly own: string; readonly link: Link } | undefined {
  const [pod] = pods;
  const link = node.link(outInterface);
  if (!pod || !link || pods.some((one) => leadsTo(one, link, target, node))) return undefined;
  return { pod: pod.ip, own: pod.outside!.name, link };
}

/** Packets of a flow that rules or policy routing may lead another way than the first one. */
export interface LaterPackets {
  /** Of those that are led past whom they are for. */
  readonly code: CauseCode;
  /** `answers`, in words. */
  readonly who: string;
  readonly to: IpAddress;
}

/**
 * What is said of packets that do not come to whom they are for; undefined: they do.
 *
 * @param outInterface undefined: there is no route
 * @param pod whom they are for, where that is a pod of this node
 */
export function ledAstray(
  { code, who, to }: LaterPackets,
  { mark, outInterface }: { readonly mark: number | undefined; readonly outInterface: number | undefined },
  pod: LocalPod | undefined,
  { target }: Asked,
  node: NodeView,
): Finding | undefined {
  const marked = markedWith(mark, who);
  const remedy = routeRemedy(formatIp(to), mark);
  if (outInterface === undefined) return { code, text: `${marked} have no route to ${formatIp(to)}`, remedy };
  const beside = besidePods(pod?.outside ? [pod] : [], outInterface, target, node);
  if (!beside) return undefined;
  return { code, text: `${marked} leave by ${beside.link.name}, and ${beside.pod} hangs on ${beside.own}`, remedy };
}

/**
 * Whether what leaves by a link comes to the pod's pair: by its bridge, or what is plugged into that for a VLAN, or by the pair itself.
 * Where rules see the frames of the bridge, what was translated for a Service is tracked there once more, as another flow that is in
 * the way of the first one's answers.
 */
function leadsTo({ outside, seenAs }: LocalPod, link: Link, { ip, service }: Asked['target'], node: NodeView): boolean {
  if (link.index === outside?.index || link.index === seenAs?.index) return true;
  if (seenAs?.kind !== 'bridge') return false;
  if (link.kind === 'vlan') return link.peerIndex === seenAs.index;
  const isPlugged =
    link.kind === 'veth' && link.peerNetnsId === undefined && node.link(link.peerIndex)?.master === seenAs.index;
  return isPlugged && !(service && showsToRules(seenAs, ip, node));
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

function notForwarded(setting: string): Finding {
  const name = setting.replaceAll('/', '.');
  return { code: 'forwarding', text: `${name} is 0: this node forwards nothing`, remedy: [`sysctl -w ${name}=1`] };
}

/** The setting that forbids to forward what comes in by a link; undefined: none does, or it is this node's own. */
function forwardingOff({ family }: IpAddress, inInterface: number | undefined, node: NodeView): string | undefined {
  const link = node.link(inInterface ?? 0)?.name;
  if (link === undefined) return undefined;
  const isOff = (name: string) => node.sysctl(name) === '0';
  if (family === 'IPv6') {
    // Since Linux 6.17 a link may forward IPv6 on its own (ip6_forward, net/ipv6/ip6_output.c).
    const isForced = node.sysctl(`net/ipv6/conf/${link}/force_forwarding`) === '1';
    const ofAll = 'net/ipv6/conf/all/forwarding';
    return !isForced && isOff(ofAll) ? ofAll : undefined;
  }
  // That of the link decides (ip_route_input_slow, net/ipv4/route.c); whoever writes the one of all writes those of all links.
  const own = `net/ipv4/conf/${link}/forwarding`;
  if (!isOff(own)) return undefined;
  return isOff('net/ipv4/ip_forward') ? 'net/ipv4/ip_forward' : own;
}

/** What comes in by a bridge and leaves by it is translated there and, of IPv6, not forwarded (br_netfilter_ipv6.c). */
function staysInBridge(inInterface: number | undefined, outInterface: number, ip: IpAddress, node: NodeView): boolean {
  const link = ip.family === 'IPv6' && inInterface === outInterface ? node.link(outInterface) : undefined;
  return link?.kind === 'bridge' && showsToRules(link, ip, node);
}

/** What a process of this node answers is routed by the address it has for the client: policy rules may ask for that. */
function lookAtOwnAnswers(asked: Asked, goal: Goal, node: NodeView, report: Report): void {
  const { client, target } = asked;
  const seen = goal.source ?? client.ip;
  if (node.isOwnAddress(formatIp(seen))) return;
  const mark = markOfAnswers(asked, goal, node, report);
  if (mark === 'not known') return;
  const flow = flowOf(target, { sourcePort: goal.port });
  // What was translated on its way in is answered there first, and routed anew once it is translated back (nf_nat_ipv4_local_fn).
  const first = node.route({ destination: seen, source: goal.ip, mark, flow });
  const to = first.kind === 'route' && client.kind !== 'node' ? client.ip : seen;
  const answer = ipEquals(to, seen) ? first : node.route({ destination: to, source: goal.ip, mark, flow });
  const receiver = client.kind === 'pod' ? client.pod : undefined;
  const answers = { code: 'way-back', who: `answers of ${formatIp(goal.ip)}`, to } as const;
  const outInterface = answer.kind === 'route' ? answer.route.outInterface : undefined;
  const astray = ledAstray(answers, { mark, outInterface }, receiver, asked, node);
  if (astray) report.failEndpoint('route', goal.address, astray);
  else if (client.kind === 'outside' && answer.kind === 'route') sameWay(asked, goal, answer.route, node, report);
}

/** The mark that rules give answers before they are routed, where policy rules may ask for it; none: undefined. */
function markOfAnswers(asked: Asked, goal: Goal, node: NodeView, report: Report): number | undefined | 'not known' {
  if (!node.hasPolicyRules(goal.ip.family)) return undefined;
  const origin = originOf(goal, node);
  if (origin === undefined) return undefined;
  const branches = answerOf(asked, goal, 'first', flowTo(asked, goal, node), false, origin, node);
  const marks = new Set(branches.map(({ result }) => result.routedBy.text));
  const [first] = branches;
  if (marks.size === 1 && first!.result.routedBy.isKnown) return markOf(first!.result) || undefined;
  const text = `which mark answers of ${goal.address} have, that policy rules may ask for, is not known`;
  report.cannotTellEndpoint('route', goal.address, text);
  return 'not known';
}

/** Answers that leave by another link or next hop than others to the client (several uplinks): whether they get there, nobody here knows. */
export function sameWay(
  { client }: Asked,
  { address }: Goal,
  { outInterface, gateway }: Route,
  node: NodeView,
  report: Report,
) {
  const plain = node.route({ destination: client.ip });
  if (plain.kind === 'refused') return;
  const { route } = plain;
  const isSame = gateway && route.gateway ? ipEquals(gateway, route.gateway) : gateway === route.gateway;
  if (isSame && outInterface === route.outInterface) return;
  const by = node.link(outInterface)?.name ?? `link ${outInterface}`;
  const via = gateway ? `${formatIp(gateway)} on ${by}` : by;
  const text = `answers to ${formatIp(client.ip)} go by ${via}, and what else is sent there does not`;
  report.cannotTellEndpoint('route', address, `${text}: whether they arrive was not looked at`);
}

/** The answer comes in by the endpoint's link and goes to the client. */
function lookAtWayBack(asked: Asked, goal: Goal, node: NodeView, report: Report): void {
  const { client } = asked;
  const { ip, address, source } = goal;
  if (node.isOwnAddress(formatIp(ip))) {
    lookAtOwnAnswers(asked, goal, node, report);
    return;
  }
  const [pod] = node.podsAt(formatIp(ip));
  if (pod && source) {
    const arriving = { source, destination: ip, flow: flowOf(asked.target, { destinationPort: goal.port }) };
    const untaken = untakenByPod(pod, arriving, node);
    if (untaken) {
      report.failEndpoint('route', address, { code: 'pod-route', ...untaken });
      return;
    }
    const isSentOn = client.kind !== 'node';
    const answers = {
      source: ip,
      destination: source,
      flow: flowOf(asked.target, { sourcePort: goal.port }),
      isSentOn,
    };
    const refused = refusedByPod(pod, answers, node, 'leave it, as answers, by another link than');
    if (refused?.isLost) {
      report.failEndpoint('route', address, { code: 'way-back', text: refused.text, remedy: refused.remedy });
      return;
    }
    if (refused) report.cannotTellEndpoint('route', address, refused.text);
  }
  if (client.kind === 'node') return;
  const out = node.route({ destination: ip });
  if (out.kind === 'refused') return;
  const mark = markOfAnswers(asked, goal, node, report);
  if (mark === 'not known') return;
  const inInterface = pod?.seenAs?.index ?? out.route.outInterface;
  const flow = flowOf(asked.target, { sourcePort: goal.port });
  const back = node.route({ destination: client.ip, source: ip, inInterface, mark, flow });
  // A lookup of IPv6 does not look at it, nor does IPVS at what a lookup says.
  const isForwarded = back.kind === 'route' && !staysInBridge(inInterface, back.route.outInterface, ip, node);
  const off = isForwarded && !isBridged(asked, goal, pod, node) ? forwardingOff(ip, inInterface, node) : undefined;
  if (off !== undefined) {
    report.failEndpoint('route', address, notForwarded(off));
    return;
  }
  if (back.kind === 'route') {
    const receiver = client.kind === 'pod' ? client.pod : undefined;
    const answers = { code: 'way-back', who: 'answers', to: client.ip } as const;
    const astray = ledAstray(answers, { mark, outInterface: back.route.outInterface }, receiver, asked, node);
    if (isBridged(asked, goal, pod, node)) return;
    if (astray) report.failEndpoint('route', address, astray);
    else if (client.kind === 'outside') sameWay(asked, goal, back.route, node, report);
    const detour = receiver && detourOf(back.route, client.ip);
    if (detour) report.cannotTellEndpoint('route', address, `answers to the pod ${receiver.ip} ${detour}`);
    return;
  }
  if (isBridged(asked, goal, pod, node)) return;
  const plain = node.route({ destination: client.ip, mark, flow });
  if (plain.kind === 'refused') {
    const text = `there is no route back to ${formatIp(client.ip)} (${plain.errno})`;
    report.failEndpoint('route', address, { code: 'way-back', text });
    return;
  }
  const stopped = forwardingOff(ip, inInterface, node);
  if (stopped !== undefined) {
    report.failEndpoint('route', address, notForwarded(stopped));
    return;
  }
  const answers = { from: ip, to: client.ip, inInterface, code: 'way-back' } as const;
  report.failEndpoint('route', address, refusedFrom(answers, back.errno, node));
}

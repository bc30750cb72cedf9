import { addressBits, cidrContains, formatIp, type IpAddress, ipEquals, isLoopback } from '../../../core/index.ts';
import type { Route, RouteAnswer } from '../../../netlink/route/index.ts';
import { LOOPBACK_IFINDEX, RTN_LOCAL } from '../../../netlink/uapi/index.ts';
import { reroutesAnswers } from '../../ipvs/index.ts';
import type { LocalPod, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { showingNoRoute } from '../commands.ts';
import { refusedFrom } from '../here/refused-from.ts';
import { answerOf, flowTo, markOf, originOf } from '../later/later-walks.ts';
import { isBridged } from '../links/bridge.ts';
import { detourOf, flowOf, refusedByPod, untakenByPod } from '../pods/routes.ts';
import type { Finding, Report } from '../report.ts';
import { ledAstray } from './astray.ts';
import { forwardingOff, notForwarded, staysInBridge } from './forwarding.ts';

/** The answer comes in by the endpoint's link and goes to the client. */
export function lookAtRouteBack(asked: Asked, goal: Goal, node: NodeView, report: Report): void {
  const ip = formatIp(goal.ip);
  if (node.isOwnAddress(ip)) {
    lookAtOwnAnswers(asked, goal, node, report);
    return;
  }
  const [pod] = node.podsAt(ip);
  if (pod && !lookAtPodRoutes(asked, goal, pod, node, report)) return;
  if (goal.byIpvs && !lookAtRoutesOfIpvs(asked, goal, node, report)) return;
  if (asked.client.kind !== 'node') lookAtForwarding(asked, goal, pod, node, report);
  else if (pod && !goal.byIpvs) lookAtTaking(asked, goal, pod, node, report);
}

/** Whether this node takes answers for its own: policy rules in front of table local, and rp_filter, may not let it. */
function lookAtTaking(asked: Asked, goal: Goal, pod: LocalPod, node: NodeView, report: Report): void {
  const { client, target } = asked;
  const { ip, address, routedFrom: to = client.ip } = goal;
  // What a process sends to loopback addresses is led out with another source, and such answers back.
  if (isLoopback(to)) return;
  const mark = markOfAnswers(asked, goal, node, report);
  if (mark === 'not known') return;
  const inInterface = pod.seenAs!.index;
  const flow = flowOf(target, { sourcePort: goal.port });
  const way = node.route({ destination: to, source: ip, inInterface, mark, flow });
  if (way.kind === 'refused') {
    const packets = { from: ip, to, inInterface, mark, code: 'way-back' } as const;
    report.failEndpoint('route', address, refusedFrom(packets, way.errno, node));
  } else if (way.route.type !== RTN_LOCAL) {
    const text = `this node has the address ${formatIp(to)}, and does not take answers of ${formatIp(ip)} for its own (ip rule)`;
    report.cannotTellEndpoint('route', address, text);
  }
}

/** Whether the pod takes what comes to it, and sends its answers to this node, as far as can be told. */
function lookAtPodRoutes(asked: Asked, goal: Goal, pod: LocalPod, node: NodeView, report: Report): boolean {
  const { client, target } = asked;
  const { ip, address, source } = goal;
  if (!source) return true;
  const arriving = { source, destination: ip, flow: flowOf(target, { destinationPort: goal.port }) };
  const untaken = untakenByPod(pod, arriving, node);
  if (untaken) {
    report.failEndpoint('route', address, { code: 'pod-route', ...untaken });
    return false;
  }
  const isSentOn = client.kind !== 'node';
  const answers = { source: ip, destination: source, flow: flowOf(target, { sourcePort: goal.port }), isSentOn };
  const refused = refusedByPod(pod, answers, node, 'leave it, as answers, by another link than');
  if (refused?.isLost) {
    report.failEndpoint('route', address, { code: 'way-back', text: refused.text, remedy: refused.remedy });
    return false;
  }
  if (refused) report.cannotTellEndpoint('route', address, refused.text);
  return true;
}

/**
 * IPVS routes packets without a source, and answers anew once they are translated back. Whether they have a way, as far
 * as can be told.
 */
function lookAtRoutesOfIpvs({ client, target }: Asked, { address }: Goal, node: NodeView, report: Report): boolean {
  const rule = node.ruleBySource(client.ip, target.ip);
  if (rule) {
    const text = `policy rule ${rule.priority} of this node asks for sources: packets of IPVS are routed without theirs and then anew (nat)`;
    report.cannotTellEndpoint('route', address, text);
  }
  if (client.kind === 'node' || !reroutesAnswers((name) => node.sysctl(name))) return true;
  const flow = flowOf(target, { sourcePort: target.port });
  const anew = node.route({ destination: client.ip, source: target.ip, flow });
  if (anew.kind !== 'refused') return true;
  const text = `there is no route for answers from ${formatIp(target.ip)} to ${formatIp(client.ip)} (${anew.errno})`;
  report.failEndpoint('route', address, { code: 'way-back', text, remedy: showingNoRoute(client.ip) });
  return false;
}

/** Answers that this node sends on, to a pod or to somebody outside. */
function lookAtForwarding(asked: Asked, goal: Goal, pod: LocalPod | undefined, node: NodeView, report: Report): void {
  const { client, target } = asked;
  const { ip } = goal;
  // By their link, or by the one that leads there: policy rules may have a way for marked packets alone.
  const out = node.route({ destination: ip, mark: goal.mark });
  const inInterface = pod?.seenAs?.index ?? (out.kind === 'route' ? out.route.outInterface : undefined);
  if (inInterface === undefined) return;
  const mark = markOfAnswers(asked, goal, node, report);
  if (mark === 'not known' || isBridged(asked, goal, pod, node)) return;
  const flow = flowOf(target, { sourcePort: goal.port });
  const back = node.route({ destination: client.ip, source: ip, inInterface, mark, flow });
  if (back.kind === 'refused') {
    const plain = node.route({ destination: client.ip, mark, flow });
    const refused = { errno: back.errno, inInterface, plain };
    report.failEndpoint('route', goal.address, refusedBack(refused, asked, goal, node));
    return;
  }
  lookAtWayBackBy(back.route, { mark, inInterface }, asked, goal, node, report);
}

/** The kernel knows a way for answers: it may not send them on, or not to where the client is. */
function lookAtWayBackBy(
  back: Route,
  { mark, inInterface }: { readonly mark: number | undefined; readonly inInterface: number },
  asked: Asked,
  goal: Goal,
  node: NodeView,
  report: Report,
): void {
  const { client } = asked;
  const { ip, address } = goal;
  // A lookup of IPv6 does not look at it, nor does IPVS at what a lookup says.
  const isForwarded = !staysInBridge(inInterface, back.outInterface, ip, node);
  const off = isForwarded ? forwardingOff(ip, inInterface, node) : undefined;
  if (off !== undefined) {
    report.failEndpoint('route', address, notForwarded(off, node));
    return;
  }
  const receiver = client.kind === 'pod' ? client.pod : undefined;
  const answers = { code: 'way-back', who: 'answers', to: client.ip } as const;
  const astray =
    ledAstray(answers, { mark, outInterface: back.outInterface }, receiver, asked, node) ??
    (client.kind === 'outside' ? otherWay(client.ip, back, node) : undefined);
  tellAstray(astray, address, report);
  const detour = receiver && detourOf(back, client.ip);
  if (detour) report.cannotTellEndpoint('route', address, `answers to the pod ${receiver.ip} ${detour}`);
}

/** Why the kernel refuses answers. @param plain its way there for what comes from nowhere */
function refusedBack(
  { errno, inInterface, plain }: { readonly errno: string; readonly inInterface: number; readonly plain: RouteAnswer },
  { client }: Asked,
  { ip }: Goal,
  node: NodeView,
): Finding {
  const to = client.ip;
  if (plain.kind === 'refused') {
    const text = `there is no route back to ${formatIp(to)} (${plain.errno})`;
    return { code: 'way-back', text, remedy: showingNoRoute(to) };
  }
  const stopped = forwardingOff(ip, inInterface, node);
  if (stopped !== undefined) return notForwarded(stopped, node);
  return refusedFrom({ from: ip, to, inInterface, code: 'way-back' }, errno, node);
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
  const astray =
    ledAstray(answers, { mark, outInterface }, receiver, asked, node) ??
    (client.kind === 'outside' && answer.kind === 'route' ? otherWay(client.ip, answer.route, node) : undefined);
  tellAstray(astray, goal.address, report);
}

function tellAstray(astray: Finding | string | undefined, address: string, report: Report): void {
  if (typeof astray === 'string') report.cannotTellEndpoint('route', address, astray);
  else if (astray) report.failEndpoint('route', address, astray);
}

/** The mark that rules give answers before they are routed, where policy rules may ask for it; none: undefined. */
function markOfAnswers(asked: Asked, goal: Goal, node: NodeView, report: Report): number | undefined | 'not known' {
  if (!node.hasPolicyRules(goal.ip.family)) return undefined;
  const origin = originOf(goal, node);
  if (origin === undefined) return undefined;
  const branches = answerOf(asked, goal, { which: 'first', isInvalid: false }, flowTo(asked, goal, node), origin, node);
  const marks = new Set(branches.map(({ result }) => result.routedBy.text));
  const [first] = branches;
  if (marks.size === 1 && first!.result.routedBy.isKnown) return markOf(first!.result) || undefined;
  const text = `which mark answers of ${goal.address} have, that policy rules may ask for, is not known`;
  report.cannotTellEndpoint('route', goal.address, text);
  return 'not known';
}

/**
 * What is said of answers that leave by another link or next hop than others to the client (several uplinks), or by somebody else although
 * it is on a link of this node. In words where nobody here knows whether they get there; undefined: they leave as others do.
 */
export function otherWay(to: IpAddress, answers: Route, node: NodeView): Finding | string | undefined {
  const { outInterface, gateway } = answers;
  const text = `answers to ${formatIp(to)}`;
  if (outInterface === LOOPBACK_IFINDEX)
    return {
      code: 'way-back',
      text: `${text} go by lo, where nobody else is`,
      remedy: [`ip route get ${formatIp(to)}`],
    };
  const detour = detourOnLink(answers, to, node);
  if (detour !== undefined) return `${text}, which is on a link of this node, ${detour}`;
  const plain = node.route({ destination: to });
  if (plain.kind === 'refused') return undefined;
  const { route } = plain;
  const isSame = gateway && route.gateway ? ipEquals(gateway, route.gateway) : gateway === route.gateway;
  if ((isSame && outInterface === route.outInterface) || goBySeveral(answers, to, node)) return undefined;
  const by = node.link(outInterface)?.name ?? `link ${outInterface}`;
  const via = gateway ? `${formatIp(gateway)} on ${by}` : by;
  return `${text} go by ${via}, and what else is sent there does not: whether they arrive was not looked at`;
}

/** Whether it is the same route with several next hops, of which each flow takes one. */
function goBySeveral({ table }: Route, ip: IpAddress, node: NodeView): boolean {
  const matched = node.route({ destination: ip, matched: true });
  return matched.kind === 'route' && matched.route.table === table && matched.route.outInterface === 0;
}

/**
 * In words, how answers leave for somebody else than the client, which is on a link of this node; undefined: they do
 * not, or it is not.
 */
function detourOnLink(answers: Route, ip: IpAddress, node: NodeView): string | undefined {
  const links = node.addresses.filter((one) => one.address.family === ip.family && cidrContains(one, ip));
  if (links.length === 0) return undefined;
  const matched = node.route({ destination: ip, matched: true });
  if (matched.kind === 'refused') return undefined;
  const { destination } = matched.route;
  // Part of a link's range may be behind a router, as are pods of other nodes.
  const isPart = links.every(({ prefixLength }) => destination.prefixLength > prefixLength);
  if (isPart && destination.prefixLength < addressBits(ip.family)) return undefined;
  // With several next hops another packet may take another one.
  return detourOf(answers, ip) ?? detourOf(matched.route, ip);
}

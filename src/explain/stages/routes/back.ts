import { formatIp, ipEquals } from '../../../core/index.ts';
import type { Route } from '../../../netlink/route/index.ts';
import { reroutesAnswers } from '../../ipvs/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { refusedFrom } from '../here/refused-from.ts';
import { answerOf, flowTo, markOf, originOf } from '../later/later-walks.ts';
import { isBridged } from '../links/bridge.ts';
import { detourOf, flowOf, refusedByPod, untakenByPod } from '../pods/routes.ts';
import type { Report } from '../report.ts';
import { ledAstray } from './astray.ts';
import { forwardingOff, notForwarded, staysInBridge } from './forwarding.ts';

/** The answer comes in by the endpoint's link and goes to the client. */
export function lookAtRouteBack(asked: Asked, goal: Goal, node: NodeView, report: Report): void {
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
  const rule = goal.byIpvs && node.ruleBySource(client.ip, asked.target.ip);
  if (rule) {
    const text = `policy rule ${rule.priority} of this node asks for sources: packets of IPVS are routed without theirs and then anew (nat)`;
    report.cannotTellEndpoint('route', address, text);
  }
  if (goal.byIpvs && client.kind !== 'node' && reroutesAnswers((name) => node.sysctl(name))) {
    const anew = node.route({ destination: client.ip, source: asked.target.ip });
    if (anew.kind === 'refused') {
      const text = `there is no route for answers from ${formatIp(asked.target.ip)} to ${formatIp(client.ip)} (${anew.errno})`;
      report.failEndpoint('route', address, { code: 'way-back', text });
      return;
    }
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

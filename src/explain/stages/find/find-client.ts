import { formatIp, type IpAddress, type IpFamily, isLoopback, parseIp } from '../../../core/index.ts';
import type { RouteAnswer } from '../../../netlink/route/index.ts';
import { RTN_BROADCAST } from '../../../netlink/uapi/index.ts';
import { hasPod, type Knowledge, type KnownNode } from '../../knowledge/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Question } from '../../question/index.ts';
import { homeOfClient, lookAtPassing, tellServedElsewhere } from '../arrival.ts';
import type { Asked, Client, Target } from '../asked.ts';
import { asking, editing, showingNoRoute, showingRules, whoHas } from '../commands.ts';
import { isItself } from '../here/itself.ts';
import { linkDown, settles } from '../links/link.ts';
import { droppedOutside, strayedFrom } from '../peer.ts';
import { flowOf } from '../pods/routes.ts';
import type { Report } from '../report.ts';
import { unknownPod } from './find-target.ts';
import { twinOf } from './twin.ts';

/** Behind which a client may be hidden. */
export interface Mask {
  readonly address: IpAddress;
  /** What is not known here. */
  readonly text: string;
}

/** Finds who connects; undefined: it cannot be told, and the report says why. */
export function findClient(
  question: Question,
  known: Pick<Asked, 'target' | 'knowledge'>,
  node: NodeView,
  report: Report,
): Client | undefined {
  const { source } = question;
  const { target, knowledge } = known;
  const from = (text: string) => {
    report.question = { ...report.question, from: text };
  };
  const { family } = target;
  switch (source.kind) {
    case 'pod': {
      const pod = knowledge.source!;
      const address = pod.addresses.map((text) => parseIp(text)).find((one) => one.family === family);
      if (address) {
        const client = findClient({ ...question, source: { kind: 'address', address } }, known, node, report);
        from(`pod ${pod.name} (${formatIp(address)})`);
        return client;
      }
      const twin = twinOf(source, knowledge, family, node);
      if (twin) {
        from(`pod ${pod.name} (${twin.ip})`);
        return podClient(twin.ip, known, node, report);
      }
      if (pod.addresses.length === 0) report.cannotTell('source', unknownPod(pod));
      else {
        const text = `pod ${pod.name} has ${pod.addresses.join(', ')}, the destination is ${family}`;
        report.fail('source', { code: 'family', text, remedy: inOtherFamily(known, pod.addresses[0]!) });
      }
      return undefined;
    }
    case 'node':
      return nodeClient(target, node, report);
    case 'any-pod': {
      const pods = node.localPods(family);
      const endpoints = new Set(target.service?.port.endpoints.map(({ ip }) => ip));
      const pod = pods.find(({ ip }) => !endpoints.has(ip)) ?? pods[0];
      if (!pod) {
        from('this node');
        report.notChecked('pods as sources: there are none on this node');
        return nodeClient(target, node, report);
      }
      from(`pod ${pod.ip}`);
      return podClient(pod.ip, known, node, report);
    }
    case 'address': {
      const ip = formatIp(source.address);
      if (source.address.family !== family) {
        const twin = twinOf(source, knowledge, family, node);
        if (twin) {
          from(`pod ${twin.ip} (${ip})`);
          return podClient(twin.ip, known, node, report);
        }
        report.fail('source', {
          code: 'family',
          text: `${ip} is ${source.address.family}, the destination is ${family}`,
          remedy: inOtherFamily(known, ip),
        });
        return undefined;
      }
      if (node.isOwnAddress(ip)) {
        from(`this node (${ip})`);
        report.stage('source', 'ok', `${ip} is this node's own`);
        if (family === 'IPv6' && isLoopback(source.address) && !node.isOwnAddress(formatIp(target.ip)))
          report.cannotTell('source', `answers to ${ip} that come in by another link than lo may be dropped`);
        if (node.podsAt(ip).length > 0)
          report.cannotTell('source', `both this node and a pod of it have the address ${ip}`);
        return begins(source.address, target, node, report) ? { kind: 'node', ip: source.address } : undefined;
      }
      const pods = node.podsAt(ip);
      if (pods.length > 0) {
        from(`pod ${ip}`);
        return podClient(ip, known, node, report);
      }
      const upon = node.linkUpon(ip);
      if (upon) {
        const text = `${ip} is in a pod of this node, on its ${upon.kind} link ${upon.name}`;
        report.cannotTell('source', `${text}: whether this node hears what it sends was not looked at`);
      }
      return outsideClient(source.address, known, node, report);
    }
  }
}

/** A Service by an address of the client's own family. @param ip of the client */
function inOtherFamily({ target, knowledge }: Pick<Asked, 'target' | 'knowledge'>, ip: string): readonly string[] {
  const from = parseIp(ip);
  if (!target.service) return [`kubectl get pods -A -o wide   # and use an address of ${from.family}`];
  const { service, port } = target.service;
  const has = service.ports.some(({ family }) => family === from.family);
  return has
    ? [asking(`svc/${service.name}:${port.port}`, { from: ip, protocol: port.protocol }, knowledge)]
    : [editing(service.name, 'spec.ipFamilyPolicy: PreferDualStack')];
}

function podClient(
  ip: string,
  { target, knowledge }: Pick<Asked, 'target' | 'knowledge'>,
  node: NodeView,
  report: Report,
): Client | undefined {
  const all = node.podsAt(ip);
  const [pod] = all;
  const { inside, outside, seenAs } = pod!;
  if (all.length > 1) {
    report.fail('source', {
      code: 'duplicate-ip',
      text: `${all.length} pods of this node have ${ip}: ${all.map(({ netns }) => netns).join(', ')}`,
      remedy: whoHas(ip, knowledge),
    });
    return undefined;
  }
  const down = linkDown(pod!);
  if (down && !isItself(pod!, target, node)) {
    report.fail('source', down);
    return undefined;
  }
  const later = isItself(pod!, target, node) ? undefined : settles(pod!);
  if (later !== undefined) report.cannotTell('source', later);
  const by = seenAs!.index === outside!.index ? '' : ` on ${seenAs!.name}`;
  report.stage('source', 'ok', `${inside.name} -> ${outside!.name}${by}, this node`, [
    { source: 'namespace', object: ip, value: pod!.netns },
  ]);
  return { kind: 'pod', ip: parseIp(ip), pod: pod! };
}

function nodeClient(target: Target, node: NodeView, report: Report): Client | undefined {
  const flow = flowOf(target, { destinationPort: target.port });
  const answer = node.route({ destination: target.ip, flow });
  const own = firstOwn(node, target.family);
  const ip = answer.kind === 'route' ? (answer.route.source ?? own) : undefined;
  if (!ip) {
    const { family } = target;
    const to = formatIp(target.ip);
    if (!own) {
      const none = `this node has no ${family} address to connect to ${to} from`;
      report.fail('source', { code: 'family', text: none, remedy: [`ip ${family === 'IPv6' ? '-6' : '-4'} address`] });
      return undefined;
    }
    const text = `this node has no route to ${to}${answer.kind === 'refused' ? ` (${answer.errno})` : ''}`;
    if (family === 'IPv6' && node.routesBySource('IPv6')) {
      // Of IPv6 the kernel then chooses a source, and asks again (ip6_dst_lookup_tail).
      report.cannotTell('source', `${text} ${SOURCELESS}`);
    } else {
      const remedy = showingNoRoute(target.ip);
      report.fail('source', { code: 'pod-route', text: `${text}, so that no connection is begun`, remedy });
    }
    return undefined;
  }
  report.stage('source', 'ok', `a process of this node, from ${formatIp(ip)}`);
  return begins(ip, target, node, report) ? { kind: 'node', ip } : undefined;
}

/**
 * Once the kernel has chosen an address to connect from it asks for the route again, with that (ip_route_connect,
 * include/net/route.h).
 */
function begins(source: IpAddress, target: Target, node: NodeView, report: Report): boolean {
  const flow = flowOf(target, { destinationPort: target.port });
  const answer = node.route({ destination: target.ip, source, flow });
  if (answer.kind === 'route') return true;
  const [to, from] = [formatIp(target.ip), formatIp(source)];
  const text = `this node has no route from ${from} to ${to} (${answer.errno}), so that no connection is begun`;
  report.fail('source', {
    code: 'pod-route',
    text,
    remedy: [showingRules(target.family), showingNoRoute(target.ip)[0]],
  });
  return false;
}

/** Where a way is missing, and who uses it has a source. */
const SOURCELESS = 'for what has no source yet, and policy rules ask for sources';

function firstOwn(node: NodeView, family: IpFamily): IpAddress | undefined {
  return node.addresses.find(({ address, scope }) => address.family === family && scope === 0)?.address;
}

/** The way to somebody for packets of pods: policy rules may refuse it to those of this node itself (`iif lo`). */
function wayForOthers(ip: IpAddress, node: NodeView): RouteAnswer {
  const pod = node.localPods(ip.family).find(({ seenAs }) => seenAs?.up);
  if (!pod) return { kind: 'refused', errno: 'ENETUNREACH' };
  return node.route({ destination: ip, source: parseIp(pod.ip), inInterface: pod.seenAs!.index });
}

function outsideClient(
  ip: IpAddress,
  known: Pick<Asked, 'target' | 'knowledge'>,
  node: NodeView,
  report: Report,
): Client | undefined {
  const { knowledge } = known;
  const own = node.route({ destination: ip });
  const answer = own.kind === 'route' ? own : wayForOthers(ip, node);
  if (answer.kind === 'route' && answer.route.type === RTN_BROADCAST) {
    report.fail('source', {
      code: 'way-back',
      text: `${formatIp(ip)} is a broadcast address, from which nobody connects`,
      remedy: [`ip route get ${formatIp(ip)}`],
    });
    return undefined;
  }
  const link = answer.kind === 'route' ? node.link(answer.route.outInterface) : undefined;
  if (!link) {
    const why = answer.kind === 'refused' ? ` (${answer.errno})` : '';
    const servedBy = homeOfClient(known, ip);
    if (servedBy !== undefined) tellServedElsewhere(known, ip, servedBy, report);
    const mask = maskOf(known, ip, node);
    if (mask) report.doubt(mask.text);
    const text = `there is no route back to ${formatIp(ip)}${why}`;
    if (node.routesBySource(ip.family)) report.cannotTell('source', `${text} ${SOURCELESS}`);
    else report.fail('source', { code: 'way-back', text, remedy: showingNoRoute(ip) });
    lookAtPassing(known, { ip }, node, report);
    return undefined;
  }
  const home = nodeOfPod(ip, knowledge);
  if (home && homeOfClient(known, ip) === undefined) {
    lookAtWayHome(home, ip, knowledge, node, report);
    // One that is masqueraded does not come by the tunnel.
    if (!maskOf(known, ip, node)) lookAtTunnel(ip, node, report);
  }
  report.stage('source', 'ok', `outside of this node; its packets are taken to come in by ${link.name}`);
  return { kind: 'outside', ip, link: { index: link.index, name: link.name } };
}

/**
 * The node by whose address a pod of it is seen here, if that masquerades what goes to addresses of nodes, as agents with --routes do in
 * most modes. Undefined: the client is none, or asks for something else.
 */
export function maskOf(
  { target, knowledge }: Pick<Asked, 'target' | 'knowledge'>,
  ip: IpAddress,
  node: NodeView,
): Mask | undefined {
  if (!knowledge.routes || !node.isOwnAddress(formatIp(target.ip))) return undefined;
  const home = nodeOfPod(ip, knowledge);
  const address = home?.addresses.map((text) => parseIp(text)).find(({ family }) => family === target.family);
  if (!home || !address) return undefined;
  const text = `${home.name} decides whether ${formatIp(ip)} is seen here by its own address or as ${formatIp(address)} (masquerading)`;
  return { address, text };
}

function nodeOfPod(ip: IpAddress, { others }: Knowledge): KnownNode | undefined {
  return others.find((one) => hasPod(one, ip));
}

/** The way of answers to a pod of another node: whether they arrive by one that is not ours is not known here. */
function lookAtWayHome(home: KnownNode, ip: IpAddress, knowledge: Knowledge, node: NodeView, report: Report): void {
  const matched = node.route({ destination: ip, matched: true });
  const way = node.wayOut(ip);
  if (matched.kind === 'route' && matched.route.destination.prefixLength === 0) {
    const text = `answers to ${formatIp(ip)}, a pod of ${home.name}, leave by the default route alone`;
    report.cannotTell('source', `${text}: right only where the network knows pods`);
    if (knowledge.routes) report.askThere(knowledge.commands.routes);
  } else if (way) {
    const strays = strayedFrom(home, { ip }, knowledge, way, node);
    if (strays) report.cannotTell('source', `whether answers arrive is not known here: ${strays.finding.text}`);
  }
}

/** Whether this node lets in what a tunnel brings from a pod of another node, and out what answers it. */
function lookAtTunnel(ip: IpAddress, node: NodeView, report: Report): void {
  const way = node.wayOut(ip);
  const dropped = way && droppedOutside(way, node);
  if (dropped) report.fail('source', dropped.finding, dropped.evidence);
}

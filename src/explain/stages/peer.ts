import { formatCidr, formatIp, type IpAddress, shellWord } from '../../core/index.ts';
import type { Evidence } from '../answer/index.ts';
import type { Branch } from '../choices.ts';
import { hasPod, type Knowledge, type KnownNode } from '../knowledge/index.ts';
import { type NodeView, startOf, type WayOut } from '../node/index.ts';
import { type Origin, type Step, type Walk, walkPacket, walkTooBig } from '../walk/index.ts';
import type { Asked, Goal } from './asked.ts';
import { isSentOnBridge } from './links/bridge.ts';
import { evidenceOf, placeOf, showing } from './place.ts';
import type { Finding, Report } from './report.ts';

// Endpoints of other nodes: the way out of this one, as far as it can be known from here.

/** In `rtm_protocol`: the route is one of ours (src/routes/kernel/route-object.ts). */
const RTPROT_NODEPLANE = 78;

/**
 * Looks at the way out of this node to an endpoint elsewhere: links, next hops, the tunnel's own packets, and how large packets may be.
 *
 * @returns the name of the link; undefined when the way is broken or cannot be followed
 */
export function lookAtPeer(asked: Asked, goal: Goal, node: NodeView, report: Report): string | undefined {
  const way = node.wayOut(goal.ip);
  if (!way) return undefined;
  const strays = strayed(asked, goal, way, node);
  // What one of several next hops is to is no matter of connections that get another.
  const isOnly = way.others.length === 0;
  // Whom a pod finds on its own bridge this node need not find.
  const isOthers = way.broken?.what === 'neighbour' && isSentOnBridge(asked, goal, node);
  const finding =
    (isOthers ? undefined : brokenWay(way, goal)) ?? (strays?.isLost && isOnly ? strays.finding : undefined);
  if (finding) {
    report.failEndpoint('link', goal.address, finding);
    return undefined;
  }
  if (strays) {
    report.warn(strays.finding.code, strays.finding.text);
    // An attempt tells whether it arrives nevertheless.
    if (!asked.probe && strays.finding.code === 'no-peer-route') report.stage('route', 'unknown', strays.finding.text);
  }
  const dropped = isOnly ? droppedOutside(way, node) : undefined;
  if (dropped) {
    report.failEndpoint('link', goal.address, dropped.finding, dropped.evidence);
    return undefined;
  }
  lookAtSize(asked, way, node, report);
  return way.link.name;
}

/** `node-2`; undefined: it is not known. */
export function nodeOf({ target, knowledge }: Asked, { ip }: Goal): string | undefined {
  const endpoint = target.service?.port.endpoints.find((one) => one.ip === formatIp(ip));
  const { destination } = knowledge;
  return (endpoint ? endpoint.node : destination.kind === 'address' ? destination.node : null) ?? undefined;
}

/** `leaves by nodeplane-v4 (vxlan) to 192.168.50.2, packets of at most 1450 bytes, 192.168.50.2 answers on eth0` */
export function describeWay({ link, kind, next, mtu, state, others }: WayOut): string {
  const by = kind === 'direct' ? link.name : `${link.name} (${kind})`;
  const to = next ? ` to ${formatIp(next)}` : '';
  const text = `leaves by ${by}${to}, ${state}, MTU ${mtu}`;
  if (others.length === 0) return text;
  const lost = others.find(({ broken }) => broken)?.broken?.text;
  return `${text}, or by another of ${others.length + 1} next hops${lost === undefined ? '' : `, of which one is lost (${lost})`}`;
}

function brokenWay({ broken, link }: WayOut, { ip }: Goal): Finding | undefined {
  if (!broken) return undefined;
  const { what, text, show } = broken;
  if (what === 'link') {
    const remedy = [text.endsWith('down') ? `ip link set ${shellWord(link.name)} up` : show];
    return { code: 'link-down', text: `${text}, the way to ${formatIp(ip)}`, remedy };
  }
  return { code: what === 'neighbour' ? 'neighbour' : 'overlay-blocked', text, remedy: [show] };
}

/** The way leads to another node than the endpoint's, or by a route of somebody else to a machine that is no node. */
export interface Strayed {
  readonly finding: Finding;
  /** Whether nothing arrives: a node may forward what it gets, but not a frame for the MAC address of another one's tunnel. */
  readonly isLost: boolean;
  /**
   * The node that gets what is for the other one. It hears no answers, which come directly: rules that drop what is in
   * no state of a connection drop what follows the first packet. Undefined: no node.
   */
  readonly through: string | undefined;
}

/** Undefined: the way leads to the endpoint's node, or by a route of ours, or where routes are the work of others, to whomever that is. */
export function strayed(asked: Asked, goal: Goal, way: WayOut, node: NodeView): Strayed | undefined {
  const { others } = asked.knowledge;
  const named = nodeOf(asked, goal);
  const wanted = others.find((one) => (named === undefined ? hasPod(one, goal.ip) : one.name === named));
  return wanted && strayedFrom(wanted, goal, asked.knowledge, way, node);
}

/** As `strayed`, for a pod of the node `wanted`. */
export function strayedFrom(
  wanted: KnownNode,
  pod: Pick<Goal, 'ip' | 'mark'>,
  knowledge: Knowledge,
  { next, kind, link, gateway }: WayOut,
  node: NodeView,
): Strayed | undefined {
  if (!next) return undefined;
  const to = formatIp(pod.ip);
  const owner = knowledge.others.find(({ addresses }) => addresses.includes(formatIp(next)));
  if (!owner) return takenByOther(knowledge, pod, wanted, node);
  if (owner === wanted) return undefined;
  const text = `${link.name} sends packets for ${to} to ${formatIp(next)}, which is ${owner.name}; ${to} is on ${wanted.name}`;
  if (kind === 'direct') {
    const remedy = [`ip route get ${to}`];
    return { finding: { code: 'no-peer-route', text, remedy }, isLost: false, through: owner.name };
  }
  const isItsOwnEnd = gateway !== undefined && hasPod(wanted, gateway);
  const remedy = [`bridge fdb show dev ${shellWord(link.name)}`];
  return {
    finding: { code: 'overlay-blocked', text, remedy },
    isLost: kind === 'vxlan' && isItsOwnEnd,
    through: owner.name,
  };
}

/** A route that is not ours, where ours would lead to the endpoint's node. */
function takenByOther(
  knowledge: Knowledge,
  { ip, mark }: Pick<Goal, 'ip' | 'mark'>,
  { name, addresses }: KnownNode,
  node: NodeView,
): Strayed | undefined {
  const to = formatIp(ip);
  if (!knowledge.routes || addresses.includes(to)) return undefined;
  const matched = node.route({ destination: ip, mark, matched: true });
  if (matched.kind === 'refused' || matched.route.protocol === RTPROT_NODEPLANE) return undefined;
  const { destination, gateway, outInterface, priority } = matched.route;
  const link = node.link(outInterface)?.name ?? `link ${outInterface}`;
  const by = `${formatCidr(destination)}${gateway ? ` via ${formatIp(gateway)}` : ''} dev ${link} metric ${priority}`;
  const text = `the route ${by} takes what is for ${to}, and is not nodeplane's, whose own would lead to ${name} (${addresses.join(', ')})`;
  const remedy = [`ip route get fibmatch ${to}   # remove it, or ask whoever made it`, knowledge.commands.routes];
  return { finding: { code: 'no-peer-route', text, remedy }, isLost: false, through: undefined };
}

type Outgoing = readonly [which: string, origin: Origin, source: IpAddress, destination: IpAddress];

/**
 * Takes a tunnel's own packets through the rules of this node, both ways.
 *
 * @returns what drops them; undefined: nothing, or it is no tunnel
 */
export function droppedOutside(
  { link, kind, outer }: WayOut,
  node: NodeView,
): { readonly finding: Finding; readonly evidence: readonly Evidence[] } | undefined {
  if (!outer) return undefined;
  const { local, remote, port, link: below } = outer;
  if (!local || local.family !== remote.family) return undefined;
  const packets: Outgoing[] = [
    [`to ${formatIp(remote)}`, 'this host', local, remote],
    // The answers of WireGuard come to the port it sends from: they belong to a flow that is let through.
    ...(kind === 'vxlan'
      ? [[`from ${formatIp(remote)}`, { index: below.index, name: below.name }, remote, local] satisfies Outgoing]
      : []),
  ];
  for (const [which, origin, source, destination] of packets) {
    const first = { protocol: 'udp', source, destination, destinationPort: port } as const;
    const { branches } = walkPacket(first, startOf(origin, remote.family, node));
    const last = whereAllEnd(branches);
    if (last) {
      const text = `the packets of ${link.name} itself, UDP port ${port} ${which}, are dropped by ${placeOf(last)}`;
      return { finding: { code: 'overlay-blocked', text, remedy: [showing(last)] }, evidence: evidenceOf(last) };
    }
  }
  return undefined;
}

/** What the pod may send and the way does not take: whether the pod is told so. */
function lookAtSize({ client, target }: Asked, way: WayOut, node: NodeView, report: Report): void {
  if (client.kind !== 'pod' || client.pod.inside.mtu <= way.mtu) return;
  const { mtu } = client.pod.inside;
  const answer = node.route({ destination: client.ip });
  const source = answer.kind === 'route' ? answer.route.source : undefined;
  if (source) {
    const start = startOf('this host', target.family, node);
    const { branches } = walkTooBig({ source, destination: client.ip }, start);
    const last = whereAllEnd(branches);
    if (last) {
      const text = `the pod sends packets of up to ${mtu} bytes, ${way.link.name} takes ${way.mtu}, and the message that tells the pod so is dropped by ${placeOf(last)}: small transfers work, large ones hang unless the endpoint asks for smaller segments`;
      report.failPartly('link', { code: 'mtu', text, remedy: [showing(last)] }, evidenceOf(last));
      return;
    }
  }
  const text = `the pod sends up to ${mtu} bytes, ${way.link.name} takes ${way.mtu}: large packets depend on ICMP getting through`;
  report.warn('mtu', text);
}

/** Where a packet ends whatever happens: undefined when it gets through on some way, or when that cannot be told. */
function whereAllEnd(branches: readonly Branch<Walk>[]): Step | undefined {
  const isEnd = ({ result: { end } }: Branch<Walk>) => end.kind === 'drop' || end.kind === 'reject';
  return branches.every(isEnd) ? branches[0]?.result.steps.at(-1) : undefined;
}

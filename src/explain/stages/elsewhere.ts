import { formatIp, formatIpPort, type IpAddress, ipEquals, shellWord } from '../../core/index.ts';
import { type Attempt, type AttemptResult, type NodeView, tryAttempts, type WayOut } from '../node/index.ts';
import type { Asked, Goal } from './asked.ts';
import { asking, onNode, whoHas } from './commands.ts';
import { describeWay, nodeOf, strayed } from './peer.ts';
import type { Finding, Report } from './report.ts';

// Endpoints of other nodes: what happens there is not seen from here. It is tried when that is asked for, and otherwise said where to ask.

/** Discard; where nobody listens, the refusal is the answer that counts. */
const ANY_PORT = 9;
const PROTOCOLS = ['TCP', 'UDP'] as const;
/** What a program hears of a datagram that did not fit, once a router has told the kernel. */
const TOLD_SO = 'EMSGSIZE';
/** IP and UDP headers. */
const HEADERS = { IPv4: 28, IPv6: 48 } as const;

/** Says of endpoints elsewhere up to where their way is known, or tries them. */
export function lookElsewhere(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  if (goals.length === 0) return;
  const results = asked.probe ? tryAll(asked, goals, node) : undefined;
  const others: string[] = [];
  for (const goal of goals) {
    const way = node.wayOut(goal.ip);
    const result = results?.get(goal.address);
    if (result === undefined) others.push(...cannotTell(asked, goal, way, node, report));
    else judge(asked, goal, way, result, node, report);
  }
  const canTry = !results && goals.some((goal) => seatOf(asked, goal, node));
  if (asked.knowledge.live) {
    for (const command of others.splice(0, 1)) report.askThere(command);
    if (canTry) report.askThere(probing(asked));
    for (const command of others) report.askThere(command);
  }
  if (results) return;
  const shown = goals.slice(0, 3).map(({ address }) => address);
  report.notChecked(`processes at ${shown.join(', ')}${goals.length > 3 ? ', ...' : ''}`);
}

/** @returns commands that show more */
function cannotTell(
  asked: Asked,
  goal: Goal,
  way: WayOut | undefined,
  node: NodeView,
  report: Report,
): readonly string[] {
  const { is, show } = whereabouts(asked, goal);
  const strays = way && strayed(asked, goal, way, node);
  const leaves = `${strays ? `${strays.finding.text}; ` : ''}${way ? `${describeWay(way)}; ` : ''}`;
  const text = `${goal.address} ${is}: ${leaves}what happens there was not looked at`;
  report.cannotTellEndpoint('endpoint', goal.address, text);
  return show;
}

interface Whereabouts {
  /** `is on node-2` */
  readonly is: string;
  /** `node-2` */
  readonly who: string;
  /** Commands that show more. */
  readonly show: readonly string[];
}

/** What is known of where an endpoint is that was not found here. */
function whereabouts(asked: Asked, goal: Goal): Whereabouts {
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
  return { is: 'is of no Service, pod or node that is known here', who: 'it', show: [`ip route get ${ip}`] };
}

/** The same question, with leave to send packets. */
function probing({ target, client, knowledge }: Asked): string {
  const { ip, port, protocol } = target;
  return `${asking(formatIpPort(ip, port), { from: formatIp(client.ip), protocol }, knowledge)} --probe`;
}

/** An agent there knows nothing of us: it is asked as we would be for somebody outside. */
function commandThere({ target, client, knowledge }: Asked, goal: Goal): string {
  return asking(goal.address, { from: formatIp(goal.source ?? client.ip), protocol: target.protocol }, knowledge);
}

/** From where an attempt is made. */
interface Seat {
  /** Undefined: this node. */
  readonly netns: string | undefined;
  readonly source: IpAddress;
  readonly protocol: Attempt['protocol'];
}

/** From where the endpoint sees the connection come; undefined: nobody here can do that. */
function seatOf({ client, target }: Asked, { source }: Goal, node: NodeView): Seat | undefined {
  const { protocol } = target;
  if (protocol === 'SCTP') return undefined;
  const ip = source ?? client.ip;
  if (client.kind === 'pod' && ipEquals(ip, client.ip)) return { netns: client.pod.netns, source: ip, protocol };
  return node.isOwnAddress(formatIp(ip)) ? { netns: undefined, source: ip, protocol } : undefined;
}

function tryAll(asked: Asked, goals: readonly Goal[], node: NodeView): ReadonlyMap<string, AttemptResult> {
  const results = new Map<string, AttemptResult>();
  const groups = new Map<string, { readonly from: Seat; readonly goals: Goal[] }>();
  for (const goal of goals) {
    const from = seatOf(asked, goal, node);
    if (!from) continue;
    const key = `${from.netns ?? ''} ${formatIp(from.source)}`;
    const group = groups.get(key) ?? { from, goals: [] };
    groups.set(key, group);
    group.goals.push(goal);
  }
  for (const { from, goals: group } of groups.values()) {
    const { protocol, source } = from;
    const attempts = group.map(({ ip, port }): Attempt => ({ protocol, source, ip, port }));
    tryAttempts(from.netns, attempts).forEach((result, index) => {
      results.set(group[index]!.address, result);
    });
  }
  return results;
}

function judge(
  asked: Asked,
  goal: Goal,
  way: WayOut | undefined,
  result: AttemptResult,
  node: NodeView,
  report: Report,
): void {
  const { address } = goal;
  const evidence = [{ source: 'probe', object: address, value: result }];
  const strays = result === 'connected' && way ? strayed(asked, goal, way, node) : undefined;
  if (strays?.through !== undefined) {
    const text = `a connection to ${address} was opened just now, though ${strays.finding.text}: whether ${strays.through} lets pass what follows is not known here`;
    report.cannotTellEndpoint('endpoint', address, text);
    return;
  }
  if (result === 'connected' || result === 'answered') {
    report.stage('endpoint', 'ok', `a connection to ${address} was answered just now`, evidence);
    lookAtLarge(asked, goal, way, node, report);
    return;
  }
  if (result === 'ETIMEDOUT' && asked.target.protocol === 'UDP') {
    const text = `${address} does not answer an empty datagram, which proves nothing`;
    report.cannotTellEndpoint('endpoint', address, text);
    return;
  }
  report.failEndpoint('endpoint', address, failure(asked, goal, way, result, node), evidence);
}

function failure(asked: Asked, goal: Goal, way: WayOut | undefined, result: AttemptResult, node: NodeView): Finding {
  const { who: where, show: remedy } = whereabouts(asked, goal);
  if (result === 'ECONNREFUSED') {
    const text = `the connection was refused: nobody listens on ${goal.port} at ${formatIp(goal.ip)}, or a firewall on the way refuses`;
    return { code: 'target-port', text, remedy };
  }
  if (result === 'EHOSTUNREACH') {
    return { code: 'neighbour', text: `${where} or a router says that nobody has ${formatIp(goal.ip)}`, remedy };
  }
  if (result !== 'ETIMEDOUT') return { code: 'no-answer', text: `the connection failed: ${result}`, remedy };
  // The neighbour's entry is of now, after a packet was sent to it.
  if (node.isNextHopDead(goal.ip)) {
    const text = `nobody answers for ${formatIp(way?.next ?? goal.ip)}, where packets for ${formatIp(goal.ip)} are sent: ${where} is down or cut off`;
    return { code: 'neighbour', text, remedy: [`ip neigh show ${formatIp(way?.next ?? goal.ip)}`] };
  }
  const strays = way && strayed(asked, goal, way, node);
  if (strays) return { ...strays.finding, text: `${strays.finding.text}, and does not answer` };
  if (!way?.next) return { code: 'no-answer', text: `${goal.address} does not answer`, remedy };
  const { outside, inside, oneWay } = listen(way, way.next, node);
  if (oneWay && !inside) {
    const text = `${where} hears what ${way.link.name} sends and does not answer through it: its way back to ${formatIp(asked.client.ip)} is missing or another`;
    return { code: 'way-back', text, remedy };
  }
  if (outside && inside === false) {
    const text = `${where} answers at ${formatIp(way.next)}, and nothing comes back through ${way.link.name} (UDP port ${way.outer?.port ?? '?'})`;
    const show = `ip -d link show dev ${shellWord(way.link.name)}   # its UDP port must pass every firewall between the nodes`;
    return { code: 'overlay-blocked', text, remedy: [show] };
  }
  const text =
    (inside ?? outside)
      ? `${where} is reached by ${way.link.name}, and ${goal.address} does not answer: it is dropped there, or its answer is lost`
      : `neither ${goal.address} nor ${where} (${formatIp(way.next)}) answers by ${way.link.name}`;
  return { code: 'no-answer', text, remedy };
}

/** From where an answer comes, of those on the way: a refusal is as good as a connection. */
interface Heard {
  /** From the next machine itself. */
  readonly outside: boolean;
  /** From the inner address of the tunnel's other end. Undefined: it has none. */
  readonly inside: boolean | undefined;
  /** From there, asked through the tunnel by an address of this node that is answered past it. */
  readonly oneWay: boolean;
}

function listen({ kind, gateway, outer }: WayOut, next: IpAddress, node: NodeView): Heard {
  const routed = (ip: IpAddress) => {
    const answer = node.route({ destination: ip });
    return answer.kind === 'route' ? answer.route.source : undefined;
  };
  const inner = kind === 'vxlan' ? gateway : undefined;
  const questions = [
    { ip: next, source: routed(next) },
    { ip: inner, source: inner && routed(inner) },
    { ip: inner, source: outer?.local?.family === inner?.family ? outer?.local : undefined },
  ];
  const attempts = questions.flatMap(({ ip, source }, index) =>
    ip && source ? PROTOCOLS.map((protocol) => ({ index, protocol, source, ip, port: ANY_PORT })) : [],
  );
  const results = tryAttempts(undefined, attempts);
  const isHeard = (index: number) => attempts.some((one, at) => one.index === index && isAnswer(results[at]!));
  return { outside: isHeard(0), inside: inner && isHeard(1), oneWay: isHeard(2) };
}

/** Large packets as the pod may send them: whether they arrive where small ones do. */
function lookAtLarge(asked: Asked, goal: Goal, way: WayOut | undefined, node: NodeView, report: Report): void {
  const { client } = asked;
  const from = seatOf(asked, goal, node);
  if (client.kind !== 'pod' || !from?.netns) return;
  const { mtu } = client.pod.inside;
  const attempt = (bytes: number): Attempt => {
    return { protocol: 'UDP', source: from.source, ip: goal.ip, port: ANY_PORT, bytes };
  };
  const [small, large] = tryAttempts(from.netns, [attempt(0), attempt(mtu - HEADERS[goal.ip.family])]);
  if (!isAnswer(small!) || isAnswer(large!) || large === TOLD_SO) return;
  const known = way && way.mtu < mtu ? `; ${way.link.name} takes ${way.mtu}` : '';
  const text = `packets of ${mtu} bytes to ${formatIp(goal.ip)} vanish, small ones arrive: somewhere on the way they do not fit, and nobody says so${known}`;
  const remedy = [`ip route get ${formatIp(goal.ip)}   # "mtu" of the CNI configuration must fit this way`];
  report.failPartly('endpoint', { code: 'mtu', text, remedy });
}

function isAnswer(result: AttemptResult): boolean {
  return result === 'connected' || result === 'answered' || result === 'ECONNREFUSED';
}

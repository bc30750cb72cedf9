import { formatIp, type IpAddress, ipEquals, readU32 } from '../../core/index.ts';
import { networkOrder16 } from '../../netlink/nftables/index.ts';
import type { CauseCode } from '../answer/index.ts';
import type { Branch } from '../choices.ts';
import { hostOf, type LocalPod, type NodeView } from '../node/index.ts';
import { KnownBytes } from '../packet/index.ts';
import {
  type Flow,
  type Origin,
  type Step,
  type Walk,
  walkAnswer,
  walkInvalidAnswer,
  walkNext,
} from '../walk/index.ts';
import type { Asked, Goal } from './asked.ts';
import { isBridged, isSwitched, isUnseen } from './links/bridge.ts';
import { isOurs, placeOf, showing } from './place.ts';
import type { Finding, Report } from './report.ts';
import { type LaterPackets, ledAstray } from './route.ts';
import { originOf as clientOrigin, lower } from './rules.ts';
import { countedLately } from './tracking/lately.ts';

/** Ports of clients are not known; the walk needs one. */
const ANY_PORT = 40_000;

/** Whether answers come back through this node, where they are translated back, and through the rules of others. */
export function lookAtWayBack(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const { client, target } = asked;
  const notes = new Set<string>();
  for (const goal of goals) {
    const isHere = node.isOwnAddress(formatIp(goal.ip)) || node.podsAt(formatIp(goal.ip)).length > 0;
    if (target.service && goal.masqueraded === false && answersItself(asked, goal, isHere, node)) {
      const untracked = untrackedByIpvs(goal, node);
      const text = `${goal.address} answers ${formatIp(client.ip)} directly, not through this node, and nothing translates that back`;
      report.failEndpoint('way back', goal.address, {
        code: 'way-back',
        text: untracked ? `${text}: ${untracked.text}` : text,
        ...(untracked && { remedy: untracked.remedy }),
      });
      continue;
    }
    if (isUnseen(asked, goal, node) && isBridged(asked, goal, node.podsAt(formatIp(goal.ip))[0], node)) {
      notes.add('answers are frames of the same bridge');
      continue;
    }
    if (comesAsItself(goal, node)) {
      const text = `${goal.address} gets packets that seem to come from itself, which nobody takes`;
      report.failEndpoint('way back', goal.address, { code: 'way-back', text });
      continue;
    }
    lookAtLater(asked, goal, isHere, node, report);
    notes.add(goal.masqueraded ? 'masqueraded, answers come to this node' : 'answers come through this node');
  }
  lookAtInvalid(asked, goals, node, report);
  report.stage('way back', 'ok', [...notes].join('; '));
}

/** Whether answers pass this node by where nothing is masqueraded. */
function answersItself({ client, target }: Asked, { ip }: Goal, isHere: boolean, node: NodeView): boolean {
  switch (client.kind) {
    case 'pod':
      return ipEquals(client.ip, ip);
    case 'outside':
      return !isHere;
    case 'node':
      // In mode ipvs the node has the addresses of Services, and takes the one it connects to for its own.
      return !isHere && ipEquals(client.ip, target.ip) && !isSourceTo(ip, client.ip, node);
  }
}

/** Whether this node connects to somebody with this address of its own by itself, so that answers to it come back. */
function isSourceTo(to: IpAddress, own: IpAddress, node: NodeView): boolean {
  const answer = node.route({ destination: to });
  return answer.kind === 'route' && answer.route.source !== undefined && ipEquals(answer.route.source, own);
}

/** Why what IPVS sends is not masqueraded, whatever rules want; undefined: it may be. */
function untrackedByIpvs(
  { byIpvs }: Goal,
  node: NodeView,
): { readonly text: string; readonly remedy: readonly string[] } | undefined {
  if (!byIpvs || node.sysctl('net/ipv4/vs/conntrack') !== '0') return undefined;
  const text = 'net.ipv4.vs.conntrack is 0, so that nothing IPVS sends is masqueraded';
  return { text, remedy: ['sysctl -w net.ipv4.vs.conntrack=1'] };
}

/** Whether rules give what comes to a pod the pod's own address as source. */
function comesAsItself({ ip, source, masqueraded }: Goal, node: NodeView): boolean {
  return masqueraded === true && source !== undefined && ipEquals(source, ip) && !node.isOwnAddress(formatIp(ip));
}

/**
 * The answer, the client's packets after the first, and what answers those. Of TCP connection tracking knows only what it has seen of a
 * connection (tcp_new, tcp_conntracks and tcp_in_window, net/netfilter/nf_conntrack_proto_tcp.c).
 */
function lookAtLater(asked: Asked, goal: Goal, isHere: boolean, node: NodeView, report: Report): void {
  const isTcp = asked.target.protocol === 'TCP';
  /** It takes none for its own in the middle. */
  const isStrict = goal.untracked === true && node.sysctl('net/netfilter/nf_conntrack_tcp_loose') === '0';
  const isLiberal = node.sysctl('net/netfilter/nf_conntrack_tcp_be_liberal') === '1';
  // Nothing begins by agreeing to it.
  const answer = isHere ? answerOf(asked, goal, 'first', isTcp && goal.untracked === true, node) : undefined;
  const isAnswerMissed = goal.untracked !== true && isUntracked(answer);
  // What IPVS holds is not walked: its servers know first packets alone.
  const next = isTcp && !goal.byIpvs ? nextOf(asked, goal, isStrict || isAnswerMissed, node) : undefined;
  if (next) lookAtNext(asked, goal, next, node, report);
  if (!answer) return;
  lookAtAnswers(asked, goal, 'answers', answer, node, report);
  if (!isTcp) return;
  const isNextMissed = goal.untracked !== true && !isLiberal && isUntracked(next);
  const later = answerOf(asked, goal, 'later', isStrict || isNextMissed, node);
  lookAtAnswers(asked, goal, 'answers after the first', later, node, report);
}

function isUntracked(branches: readonly Branch<Walk>[] | undefined): boolean {
  return branches?.every(({ result }) => result.packet.connection === 'untracked') === true;
}

/** The client's packets after the first. */
function nextOf(asked: Asked, goal: Goal, isInvalid: boolean, node: NodeView): readonly Branch<Walk>[] {
  const { sources } = node.rulesFor(asked.target.family);
  return walkNext(flowTo(asked, goal), isInvalid, clientOrigin(asked), sources, hostOf(node)).branches;
}

/** Those that rules let pass until they are of an established connection. */
function lookAtNext(asked: Asked, goal: Goal, branches: readonly Branch<Walk>[], node: NodeView, report: Report): void {
  const [pod] = node.podsAt(formatIp(goal.ip));
  const who = 'packets after the first';
  const next = { code: 'no-peer-route', who, to: goal.ip } as const;
  const astray = (walk: Walk) => {
    const found = markedAstray(next, walk, pod, asked, node);
    return found && !isSwitched(asked, goal, node) ? found : undefined;
  };
  const wanted = { destination: goal.ip };
  const later = { stage: 'others', code: 'foreign-drop', who, wanted, astray } as const;
  lookAtEnds(asked, branches, goal, flowTo(asked, goal), later, report);
}

function flowTo({ client, target }: Asked, { ip, port, masqueraded, source, untracked }: Goal): Flow {
  const protocol = lower(target.protocol);
  return {
    first: { protocol, source: client.ip, destination: target.ip, destinationPort: target.port },
    translated: {
      ...(!ipEquals(ip, target.ip) && { destination: KnownBytes.of(ip.bytes) }),
      ...(port !== target.port && { destinationPort: KnownBytes.of(networkOrder16(port)) }),
      ...(masqueraded !== false && {
        source: source ? KnownBytes.of(source.bytes) : KnownBytes.unknown(client.ip.bytes.length),
        sourcePort: KnownBytes.unknown(2),
      }),
    },
    untracked,
  };
}

function answerOf(
  asked: Asked,
  goal: Goal,
  which: 'first' | 'later',
  isInvalid: boolean,
  node: NodeView,
): readonly Branch<Walk>[] {
  const { client, target } = asked;
  const protocol = lower(target.protocol);
  const { branches } = walkAnswer(
    { protocol, source: goal.ip, sourcePort: goal.port, destination: client.ip, destinationPort: ANY_PORT },
    which,
    isInvalid,
    flowTo(asked, goal),
    originOf(goal, node) ?? 'this host',
    node.rulesFor(target.family).sources,
    hostOf(node),
  );
  return branches;
}

function lookAtAnswers(
  asked: Asked,
  goal: Goal,
  who: string,
  branches: readonly Branch<Walk>[],
  node: NodeView,
  report: Report,
): void {
  const { client } = asked;
  const [pod] = node.podsAt(formatIp(goal.ip));
  const receiver = client.kind === 'pod' ? client.pod : undefined;
  const answers = { code: 'way-back', who, to: client.ip } as const;
  const astray = (walk: Walk) => {
    const found = markedAstray(answers, walk, receiver, asked, node);
    return found && !isBridged(asked, goal, pod, node) ? found : undefined;
  };
  const wanted = { source: asked.target.ip, destination: client.ip };
  lookAtEnds(asked, branches, goal, flowTo(asked, goal), { stage: 'way back', ...answers, wanted, astray }, report);
}

/** Where a mark leads packets; what is not marked, routes are asked about (lookAtRoutes). Undefined: to whom they are for. */
function markedAstray(
  packets: LaterPackets,
  { end, routedBy }: Walk,
  pod: LocalPod | undefined,
  asked: Asked,
  node: NodeView,
): Finding | undefined {
  const mark = routedBy.isKnown ? readU32(routedBy.bytes, 0) : 0;
  if (mark === 0 || (end.kind !== 'no route' && end.kind !== 'sent')) return undefined;
  return ledAstray(packets, { mark, outInterface: end.kind === 'sent' ? end.by.index : undefined }, pod, asked, node);
}

/** Packets that come after the first one, by either way. */
interface Later {
  readonly stage: 'others' | 'way back';
  /** Of those that are not translated. */
  readonly code: CauseCode;
  readonly who: string;
  /** From whom they seem to come in the end, and to whom. */
  readonly wanted: { readonly source?: IpAddress; readonly destination: IpAddress };
  /** What is said of a way that ends beside whom the packet is for. */
  readonly astray: (walk: Walk) => Finding | undefined;
}

/** What becomes of packets that belong to a flow: they may be dropped, and those that are not tracked are not translated. */
function lookAtEnds(
  { knowledge }: Asked,
  branches: readonly Branch<Walk>[],
  { address, byIpvs }: Goal,
  { translated }: Flow,
  { stage, code, who, wanted, astray }: Later,
  report: Report,
): void {
  const isTranslated = Object.keys(translated).length > 0 && !byIpvs;
  const wrong = (walk: Walk): Finding | undefined => {
    const { end, steps, packet } = walk;
    const finding = (found: CauseCode, text: string, by: readonly Step[]) => ({
      code: found,
      text,
      remedy: by.map(showing),
    });
    if (end.kind === 'drop' || end.kind === 'reject') {
      const last = steps.at(-1)!;
      const ofWhom = isOurs(last, knowledge.mode) ? 'drift' : 'foreign-drop';
      return finding(ofWhom, `${who} are dropped by ${placeOf(last)}`, [last]);
    }
    if (isTranslated && packet.connection === 'untracked')
      return finding(
        code,
        `${who} are kept out of connection tracking (notrack), so that they are not translated`,
        steps,
      );
    // The source is translated in the last hook, which a packet without a route does not come to; lookAtRoutes asks about those.
    const settled = end.kind === 'no route' ? (['destination'] as const) : (['source', 'destination'] as const);
    if (!byIpvs && settled.some((which) => isAnother(packet.ends[which], wanted[which])))
      return finding(code, `${who} are translated, but not as the connection is`, steps);
    const found = astray(walk);
    return found && finding(found.code, found.text, steps);
  };
  const ways = branches.map(({ result, choices }) => ({
    end: result.end,
    choices,
    found: result.end.kind === 'cannot tell' ? undefined : wrong(result),
  }));
  const isEach = ways.every(({ found }) => found);
  for (const { end, choices, found } of ways) {
    if (end.kind === 'cannot tell') report.cannotTell(stage, `the way of ${who} through the rules: ${end.about}`);
    if (!found) continue;
    if (isEach) report.failEndpoint(stage, address, found);
    else if (choices.some(({ kind }) => kind === 'unknown')) report.cannotTell(stage, `it may be that ${found.text}`);
    else report.failPartly(stage, { ...found, text: `${address}: by chance ${found.text}` });
  }
}

/** Whether it is certainly not this one. */
function isAnother(address: KnownBytes, wanted: IpAddress | undefined): boolean {
  return wanted !== undefined && address.equals(wanted.bytes) === false;
}

/** By which link an answer comes in; undefined: it is not known. */
function originOf({ ip }: Goal, node: NodeView): Origin | undefined {
  if (node.isOwnAddress(formatIp(ip))) return 'this host';
  const link = node.podsAt(formatIp(ip))[0]?.seenAs ?? node.wayOut(ip)?.link;
  return link && { index: link.index, name: link.name };
}

/**
 * Answers outside of the TCP window pass translation by (nf_conntrack_in, net/netfilter/nf_conntrack_core.c). The client knows nobody
 * of the endpoint's own address and resets the connection, unless a rule drops such packets.
 */
function lookAtInvalid(
  { target, client, knowledge }: Asked,
  goals: readonly Goal[],
  node: NodeView,
  report: Report,
): void {
  const lately = countedLately(knowledge, node);
  const invalid = lately?.by('invalid') ?? 0;
  const isLiberal = node.sysctl('net/netfilter/nf_conntrack_tcp_be_liberal') === '1';
  if (!target.service || target.protocol !== 'TCP' || !lately || invalid === 0 || isLiberal) return;
  const passing = goals.find((goal) => {
    const origin = originOf(goal, node);
    if (origin === undefined || origin === 'this host') return false;
    const { ip: source, port: sourcePort } = goal;
    const destination = goal.source ?? client.ip;
    const { branches } = walkInvalidAnswer(
      { protocol: 'tcp', source, sourcePort, destination, destinationPort: ANY_PORT },
      origin,
      node.rulesFor(target.family).sources,
      hostOf(node),
    );
    return branches.every(({ result: { end } }) => end.kind === 'sent' || end.kind === 'delivered');
  });
  if (!passing) return;
  const text = `${invalid} packets in the last ${lately.seconds} s were none of a tracked connection, to the kernel's mind: such an answer of ${passing.address} is not translated back, and resets the connection`;
  report.warn('invalid-rst', text);
}

import { formatIp, type IpAddress } from '../../../core/index.ts';
import type { CauseCode } from '../../answer/index.ts';
import type { Branch } from '../../choices.ts';
import { reroutesAnswers } from '../../ipvs/index.ts';
import type { NodeView } from '../../node/index.ts';
import { KnownBytes } from '../../packet/index.ts';
import type { Flow, Walk } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { isBridged, isSwitched } from '../links/bridge.ts';
import { isOurs, placeOf, showing } from '../place.ts';
import { flowOf } from '../pods/routes.ts';
import type { Finding, Report } from '../report.ts';
import { otherWay } from '../routes/back.ts';
import { type Doing, keepsOut, marks, showingThose, translates } from '../rules/doing.ts';
import { repairing } from '../rules/drift.ts';
import { originOf as clientOrigin } from '../rules/first-packet.ts';
import { byOwnPolicy } from '../rules/own-policy.ts';
import { isKeptOut } from '../tracking/tracked.ts';
import { lookAtBare } from './bare.ts';
import { answerOf, flowTo, markAfter, markOf, nextOf, originOf } from './later-walks.ts';
import { markedAstray, markedRefused, otherThanFirst } from './marked.ts';
import { untrackedByIpvs } from './untracked.ts';

// What comes of a connection after its first packet: answers, and what the client sends then.

/** Marks of a flow that are followed, where each packet changes what the one before has left. */
const MOST_ROUNDS = 4;

/**
 * The answer, the client's packets after the first, and what answers those. Of TCP connection tracking knows only what it has seen of a
 * connection (tcp_new, tcp_conntracks and tcp_in_window, net/netfilter/nf_conntrack_proto_tcp.c).
 */
export function lookAtLater(asked: Asked, goal: Goal, isHere: boolean, node: NodeView, report: Report): void {
  const isTcp = asked.target.protocol === 'TCP';
  /** It takes none for its own in the middle. */
  const isStrict = goal.untracked === true && node.sysctl('net/netfilter/nf_conntrack_tcp_loose') === '0';
  const isLiberal = node.sysctl('net/netfilter/nf_conntrack_tcp_be_liberal') === '1';
  const origin = originOf(goal, node);
  // Those of endpoints elsewhere are walked for the marks they leave alone: what becomes of them before they come here is not known.
  const isAnswered = isHere || (isTcp && origin !== undefined);
  const answerTo = (who: string, which: 'first' | 'later', flow: Flow, isInvalid: boolean) => {
    const branches = answerOf(asked, goal, { which, isInvalid }, flow, origin ?? 'this host', node);
    if (isHere) lookAtAnswers(asked, goal, who, which, branches, node, report);
    return branches;
  };
  const begun = flowTo(asked, goal, node);
  // Nothing begins by agreeing to it.
  const isAnswerInvalid = isTcp && goal.untracked === true;
  const answer = isAnswered ? answerTo('answers', 'first', begun, isAnswerInvalid) : undefined;
  const isAnswerMissed = goal.untracked !== true && isUntracked(answer);
  const missed = (who: string, answers: readonly Branch<Walk>[] | undefined, next?: readonly Branch<Walk>[]) => {
    // What is for this node itself is not sent on, and needs no flow.
    if (origin !== 'this host') lookAtMissed(asked, goal, who, answers, next, report);
  };
  if (asked.target.protocol === 'SCTP') missed('answers', answer);
  const bareFrom = isHere ? (origin ?? 'this host') : undefined;
  let mark = answer ? markAfter(answer, begun.mark) : KnownBytes.unknown(4);
  for (const met = new Set<string>(); isTcp && !met.has(mark.text); ) {
    met.add(mark.text);
    if (met.size > MOST_ROUNDS) {
      report.cannotTell('others', 'rules give each packet of a connection another mark (connmark)');
      return;
    }
    const agreed = { flow: { ...begun, mark }, isInvalid: isStrict || isAnswerMissed };
    const next = nextOf(asked, agreed.flow, { which: 'later', isInvalid: agreed.isInvalid }, node);
    missed('answers', answer, next);
    lookAtNext(asked, goal, next, node, report);
    if (met.size === 1) lookAtBare(asked, goal, { ...agreed, origin: bareFrom }, node, report);
    mark = markAfter(next, mark);
    const isNextMissed = goal.untracked !== true && !isLiberal && isUntracked(next);
    if (!isAnswered) return;
    const later = answerTo('answers after the first', 'later', { ...begun, mark }, isStrict || isNextMissed);
    // It lets pass what acknowledges data that it has not seen.
    if (!isLiberal && !isAnswerMissed && !isUntracked(next)) missed('answers after the first', later);
    mark = markAfter(later, mark);
  }
}

function isUntracked(branches: readonly Branch<Walk>[] | undefined): boolean {
  return branches?.every(isKeptOut) === true;
}

/**
 * Answers that IPVS translates and connection tracking misses. To its mind what the client sends then is of no flow
 * (tcp_conntracks, net/netfilter/nf_conntrack_proto_tcp.c), and sent on by IPVS it begins one, for whose answers the
 * first one stands already: it gets another source port (nf_nat_used_tuple, nf_nat_core.c). Datagrams need no answer to
 * be of their flow.
 *
 * @param next undefined: whether the client is heard nevertheless is not known
 */
function lookAtMissed(
  { knowledge }: Asked,
  { address, byIpvs, untracked, masqueraded }: Goal,
  who: string,
  answers: readonly Branch<Walk>[] = [],
  next: readonly Branch<Walk>[] | undefined,
  report: Report,
): void {
  // Those of a masqueraded client are not translated back to it, which is told.
  if (!byIpvs || untracked === true || masqueraded === true || !answers.some(isKeptOut) || isUntracked(next)) return;
  const text = `${who} are kept out of connection tracking (notrack), which takes what the client sends then for another connection’s`;
  if (next && !next.some(isKeptOut) && isUntracked(answers)) {
    const steps = answers.flatMap(({ result }) => result.steps);
    const remedy = showingThose(steps, keepsOut, knowledge.mode);
    report.failEndpoint('way back', address, { code: 'way-back', text, remedy });
  } else report.cannotTellEndpoint('way back', address, `it may be that ${text}`);
}

/** Those that rules let pass until they are of an established connection. */
function lookAtNext(asked: Asked, goal: Goal, branches: readonly Branch<Walk>[], node: NodeView, report: Report): void {
  const [pod] = node.podsAt(formatIp(goal.ip));
  const who = 'packets after the first';
  // IPVS translates it behind its first route.
  const flow = flowOf(asked.target, { destinationPort: goal.byIpvs ? asked.target.port : goal.port });
  const next = {
    code: 'no-peer-route',
    who,
    to: goal.ip,
    firstMark: goal.mark,
    origin: clientOrigin(asked),
    flow,
    byIpvs: goal.byIpvs,
  } as const;
  const astray = (walk: Walk) => {
    if (isSwitched(asked, goal, node)) return undefined;
    const found = markedAstray(next, walk, pod, asked, node);
    return (
      certain(found) ?? markedRefused(next, walk, node) ?? found ?? (pod ? undefined : otherThanFirst(next, walk, node))
    );
  };
  const wanted = { destination: goal.ip };
  const untracked = untrackedByIpvs(goal, node);
  const isPassedBy = () => mayPassBy(asked, goal, node);
  const later = { stage: 'others', code: 'foreign-drop', who, wanted, untracked, isPassedBy, astray } as const;
  lookAtEnds(asked, branches, goal, flowTo(asked, goal, node), later, report);
}

function lookAtAnswers(
  asked: Asked,
  goal: Goal,
  who: string,
  which: 'first' | 'later',
  branches: readonly Branch<Walk>[],
  node: NodeView,
  report: Report,
): void {
  const { client, target } = asked;
  const [pod] = node.podsAt(formatIp(goal.ip));
  const receiver = client.kind === 'pod' ? client.pod : undefined;
  const flow = flowOf(target, { sourcePort: goal.port });
  const origin = originOf(goal, node) ?? 'this host';
  const answers = { code: 'way-back', who, to: client.ip, origin, flow, byIpvs: goal.byIpvs } as const;
  const astray = (walk: Walk) => {
    const found = markedAstray(answers, walk, receiver, asked, node) ?? byOtherUplink(asked, goal, walk, node);
    // What IPVS translates back is routed anew, frames of a bridge too (ip_vs_route_me_harder).
    const isLost = goal.byIpvs && walk.end.kind === 'no route' && reroutesAnswers((name) => node.sysctl(name));
    if (isLost || !isBridged(asked, goal, pod, node))
      return certain(found) ?? markedRefused(answers, walk, node) ?? found;
    return undefined;
  };
  const wanted = { source: target.ip, destination: client.ip };
  const untracked = untrackedByIpvs(goal, node);
  // Of TCP none is in a flow table before it was agreed to.
  const isPassedBy = () => (target.protocol !== 'TCP' || which === 'later') && mayPassBy(asked, goal, node);
  const later = { stage: 'way back', ...answers, wanted, untracked, isPassedBy, astray } as const;
  lookAtEnds(asked, branches, goal, flowTo(asked, goal, node), later, report);
}

/**
 * Whether packets of a flow may pass all rules by, once it is in a flow table: those that this node sends on
 * (nf_flow_offload_ip_hook).
 */
function mayPassBy({ client }: Asked, goal: Goal, node: NodeView): boolean {
  return client.kind !== 'node' && originOf(goal, node) !== 'this host' && node.hasFlowTables;
}

/** What is said of answers to a client outside that do not leave by the way of all else, by the mark they have; see `otherWay`. */
function byOtherUplink({ client, target }: Asked, goal: Goal, walk: Walk, node: NodeView): ReturnType<typeof otherWay> {
  if (client.kind !== 'outside' || walk.end.kind !== 'sent' || !node.hasPolicyRules(target.family)) return undefined;
  const origin = originOf(goal, node);
  const inInterface = typeof origin === 'object' ? origin.index : undefined;
  const flow = flowOf(target, { sourcePort: goal.port });
  const mark = markOf(walk) || undefined;
  const way = node.route({ destination: client.ip, source: goal.ip, inInterface, mark, flow });
  return way.kind === 'route' ? otherWay(client.ip, way.route, node) : undefined;
}

const certain = (astray: Finding | string | undefined) => (typeof astray === 'object' ? astray : undefined);

/** Packets that come after the first one, by either way. */
interface Later {
  readonly stage: 'others' | 'way back';
  /** Of those that are not translated. */
  readonly code: CauseCode;
  readonly who: string;
  /** From whom they seem to come in the end, and to whom. */
  readonly wanted: { readonly source?: IpAddress; readonly destination: IpAddress };
  /** Why IPVS sends them past connection tracking, which our own rules count on. */
  readonly untracked: ReturnType<typeof untrackedByIpvs>;
  /** Whether what this node has seen of the flow may lead them past rules. */
  readonly isPassedBy: () => boolean;
  /** What is said of a way that ends beside whom the packet is for, in words where it may. */
  readonly astray: (walk: Walk) => Finding | string | undefined;
}

/** What becomes of packets that belong to a flow: they may be dropped, and those that are not tracked are not translated. */
function lookAtEnds(
  { knowledge }: Asked,
  branches: readonly Branch<Walk>[],
  { address, byIpvs, masqueraded }: Goal,
  { translated }: Flow,
  { stage, code, who, wanted, untracked, isPassedBy, astray }: Later,
  report: Report,
): void {
  // What IPVS changes it changes back by connections of its own.
  const isTranslated = byIpvs ? masqueraded === true : Object.keys(translated).length > 0;
  const wrong = (walk: Walk): Finding | string | undefined => {
    const { end, steps, packet } = walk;
    const finding = (found: CauseCode, text: string, does: Doing) => ({
      code: found,
      text,
      remedy: showingThose(steps, does, knowledge.mode),
    });
    if (end.kind === 'drop' || end.kind === 'reject') {
      const last = steps.at(-1)!;
      const text = `${who} are dropped by ${placeOf(last)}`;
      const policy = byOwnPolicy(last, text, knowledge);
      if (policy) return policy;
      const remedy = [showing(last)];
      if (!isOurs(last, knowledge.mode)) return { code: 'foreign-drop', text, remedy };
      if (!untracked) return { code: 'drift', text, remedy: [...repairing(knowledge), ...remedy] };
      return { code: 'way-back', text: `${text}: ${untracked.text}`, remedy: untracked.remedy };
    }
    if (isTranslated && packet.connection === 'untracked')
      return finding(
        code,
        `${who} are kept out of connection tracking (notrack), so that they are not translated`,
        keepsOut,
      );
    // The source is translated in the last hook, which a packet without a route does not come to; lookAtRoutes asks about those.
    const settled = end.kind === 'no route' ? (['destination'] as const) : (['source', 'destination'] as const);
    if (!byIpvs && settled.some((which) => isAnother(packet.ends[which], wanted[which])))
      return finding(code, `${who} are translated, but not as the connection is`, translates);
    const found = astray(walk);
    return typeof found === 'object' ? finding(found.code, found.text, marks) : found;
  };
  const ways = branches.map(({ result, choices }) => ({
    end: result.end,
    choices,
    found: result.end.kind === 'cannot tell' ? undefined : wrong(result),
  }));
  const isEach = ways.every(({ found }) => typeof found === 'object');
  for (const { end, choices, found } of ways) {
    if (end.kind === 'cannot tell') report.cannotTell(stage, `the way of ${who} through the rules: ${end.about}`);
    if (!found) continue;
    if (typeof found === 'string') report.cannotTellEndpoint(stage, address, found);
    else if (isPassedBy()) {
      report.cannotTell(stage, `it may be that ${found.text}, unless a flow table (flowtable) takes them past rules`);
    } else if (isEach) report.failEndpoint(stage, address, found);
    // Where each packet counts, one in N is not one connection in N: what is sent anew counts as well.
    else if (choices.some(({ kind }) => kind === 'turn'))
      report.doubt(
        `it may be that ${found.text}, which counts packets: which of a connection’s these are is not known`,
      );
    else if (choices.some(({ kind }) => kind === 'unknown')) report.cannotTell(stage, `it may be that ${found.text}`);
    else report.failPartly(stage, { ...found, text: `${address}: by chance ${found.text}` });
  }
}

/** Whether it is certainly not this one. */
function isAnother(address: KnownBytes, wanted: IpAddress | undefined): boolean {
  return wanted !== undefined && address.equals(wanted.bytes) === false;
}

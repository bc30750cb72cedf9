import { formatIp } from '../core/index.ts';
import type { Answer } from './answer/index.ts';
import type { Knowledge } from './knowledge/index.ts';
import type { NodeView } from './node/index.ts';
import type { Question, Source } from './question/index.ts';
import { isServedElsewhere, lookAtArrival, lookAtBeside, lookAtPassing } from './stages/arrival.ts';
import type { Asked, Client, Goal, Target } from './stages/asked.ts';
import { lookAtEndpoints } from './stages/endpoints.ts';
import { findClient, maskOf } from './stages/find/find-client.ts';
import { findTarget } from './stages/find/find-target.ts';
import { isHere } from './stages/here/is-here.ts';
import { lookAtItself } from './stages/here/itself.ts';
import { lookAtWayBack } from './stages/later/way-back.ts';
import { lookAtLinkChains, lookAtSocketPrograms, lookForVrf } from './stages/link-chains.ts';
import { lookAtLinks } from './stages/links/link.ts';
import { Report } from './stages/report.ts';
import { lookAtRoutes } from './stages/routes/route.ts';
import { lookAtRules, lookForOldWays } from './stages/rules/rules.ts';
import { seenBefore } from './stages/seen.ts';
import { lookAtAgent } from './stages/serving-agent.ts';
import { lookAtNodePort, lookAtSockets } from './stages/sockets/sockets.ts';
import { lookAtClientPorts } from './stages/tracking/client-ports.ts';
import { lookAtFlows } from './stages/tracking/flows.ts';
import { lookAtRaces } from './stages/tracking/races.ts';
import { lookAtRoom } from './stages/tracking/room.ts';

/** More endpoints are not looked at one by one: a node has as many pods, seldom more. */
const MOST_GOALS = 128;
/** Nor are more ways to one of them, which differ by marks or translations. */
const MOST_WAYS = 4;

export interface ExplainOptions {
  /** Connects to endpoints of other nodes: the one thing that sends packets. @default false */
  readonly probe?: boolean;
  /** What is known of the destination does not hold for as long as it takes to answer. @default false */
  readonly isChanging?: boolean;
}

/**
 * Says whether a connection works from this node, and if not, why: stage after stage, until one fails for all endpoints.
 *
 * @param node undefined: the kernel is not asked, and what depends on it cannot be told
 * @throws what reading the kernel throws; with `probe`, ERR_EXEC
 */
export function explain(
  question: Question,
  knowledge: Knowledge,
  node: NodeView | undefined,
  { probe = false, isChanging = false }: ExplainOptions = {},
): Answer {
  const report = new Report();
  report.question = { ...report.question, from: nameOf(question.source) };
  const target = findTarget(question, knowledge, node, report);
  let client: Client | undefined;
  if (target && node) {
    client = lookAtNode(question, { knowledge, target, probe }, node, report);
    for (const doubt of node.doubts) report.doubt(doubt);
  }
  // Which of two addresses the client is seen by here, another node decides: an answer holds if it is that of both.
  const mask = target && node && client?.kind === 'outside' && maskOf({ target, knowledge }, client.ip, node);
  const { verdict } = report.answer();
  if (mask && verdict !== 'unknown') {
    const source = { kind: 'address', address: mask.address } as const;
    if (explain({ ...question, source }, knowledge, node, { probe }).verdict !== verdict) report.doubt(mask.text);
  }
  if (target && !node) lookAtPlan(question, knowledge, target, report);
  // Changes make neither of what works nor of what cannot be told a wrong answer.
  if (isChanging && !['works', 'unknown'].includes(report.answer().verdict))
    report.doubt(`${report.question.to} changes while this is answered`);
  const answer = report.answer();
  if (!target || !client) return answer;
  const from = question.source.kind === 'any-pod' ? undefined : client.ip;
  return { ...answer, seen: seenBefore(knowledge, target, from, answer) };
}

/** Who connects, in the words of the question: what is found of them comes later, if the destination is found. */
function nameOf(source: Source): string {
  switch (source.kind) {
    case 'any-pod':
      return 'any pod';
    case 'node':
      return 'this node';
    case 'address':
      return formatIp(source.address);
    case 'pod':
      return `pod ${source.namespace}/${source.name}`;
  }
}

/** Looks from wherever the client is; undefined: it was not found. */
function lookAtNode(
  question: Question,
  known: Omit<Asked, 'client'>,
  node: NodeView,
  report: Report,
): Client | undefined {
  // By which link others come, a VRF decides as well.
  if (!isOfPod(question.source, node)) lookForVrf(node.links, node, report);
  const client = findClient(question, known, node, report);
  if (!client) return undefined;
  const asked: Asked = { ...known, client };
  lookAtStages(asked, node, report);
  lookAtSocketPrograms(asked, node, report);
  lookAtOwnRules(asked, node, report);
  if (client.kind === 'outside') lookAtPassing(known, client, node, report);
  else lookAtBeside(asked, node, report);
  return client;
}

function isOfPod(source: Source, node: NodeView): boolean {
  if (source.kind === 'address') return node.podsAt(formatIp(source.address)).length > 0;
  return source.kind !== 'node';
}

function lookAtOwnRules({ client, target }: Asked, node: NodeView, report: Report): void {
  const own = client.kind === 'pod' ? node.rulesIn(client.pod, target.family) : undefined;
  if (!own) return;
  const text = `the pod has rules of its own: ${own.text}`;
  // What they lead elsewhere, to a sidecar that answers, nothing on the way of all else can stop.
  if (own.lead) report.doubt(text);
  else report.cannotTell('source', text);
}

function lookAtStages(asked: Asked, node: NodeView, report: Report): void {
  const { knowledge, target } = asked;
  const itself = lookAtItself(asked, node, report);
  const planned = !itself && target.service ? lookAtEndpoints(asked, report) : undefined;
  if (isServedElsewhere(asked, planned?.verdict === 'drop', node, report)) return;
  if (report.hasFailed) {
    lookForOldWays(asked, node, report);
    return;
  }
  lookAtClientPorts(asked, node, report);
  if (report.hasFailed) return;
  if (itself) {
    const within = asked.client.kind === 'pod' ? asked.client.pod : undefined;
    if (!report.hasFailed) lookAtSockets(asked, [itself], node, report, within);
    if (!report.hasFailed) report.stage('way back', 'ok', 'stays in the pod');
    return;
  }
  if (!lookAtAgent(knowledge, target, report)) return;
  const all = lookAtRules(asked, planned, node, report);
  if (report.hasFailed) return;
  const [goals = [], ...others] = sortedByWay(all, node, report);
  askUnanswered(asked, goals, node);
  lookAtLinkChains(asked, goals, node, report);
  lookAtRoom(asked, goals, node, report);
  if (report.hasFailed) return;
  lookAtRaces(asked, node, report);
  lookAtFlows(asked, planned, goals, node, report);
  if (report.hasFailed) return;
  lookAtArrival(asked, node, report);
  if (report.hasFailed) return;
  // Where it leads elsewhere, others get what comes.
  if (target.service?.via === 'node-port' && all.length > 0) lookAtNodePort(target, node, report);
  lookAtEnds(asked, goals, node, report);
  for (const ways of others) {
    const other = report.another();
    lookAtEnds(asked, ways, node, other);
    report.join(other, ways);
  }
  report.settle(all);
}

/** What did not answer when it was asked last may do so now: the next packet has it asked for anew. */
function askUnanswered({ client }: Asked, goals: readonly Goal[], node: NodeView): void {
  const elsewhere = goals.map(({ ip }) => ip).filter((ip) => !isHere(ip, node));
  node.askUnanswered(client.kind === 'outside' ? [...elsewhere, client.ip] : elsewhere);
}

function lookAtEnds(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  for (const look of [lookAtRoutes, lookAtLinks, lookAtSockets, lookAtWayBack]) {
    look(asked, goals, node, report);
    if (report.hasFailed) return;
  }
}

/** Those endpoints that are looked at: of this node before others, of which less can be told. What is left out neither works nor fails. */
function theNearest(all: readonly (readonly Goal[])[], node: NodeView, report: Report): readonly (readonly Goal[])[] {
  const distance = ([goal]: readonly Goal[]) => (isHere(goal!.ip, node) ? 0 : 1);
  const sorted = [...all].sort((one, other) => distance(one) - distance(other));
  for (const [goal] of sorted.slice(MOST_GOALS)) {
    const text = `${goal!.address} is one of ${all.length} endpoints, of which ${MOST_GOALS} are looked at`;
    report.cannotTellEndpoint('endpoint', goal!.address, text);
  }
  report.notChecked(`${all.length - MOST_GOALS} of ${all.length} endpoints`);
  return sorted.slice(0, MOST_GOALS);
}

/** First one way to each address, then another one to each of those to which there are more. */
function sortedByWay(all: readonly Goal[], node: NodeView, report: Report): readonly (readonly Goal[])[] {
  const ways = new Map<string, Goal[]>();
  for (const goal of all) ways.set(goal.address, [...(ways.get(goal.address) ?? []), goal]);
  const looked = ways.size > MOST_GOALS ? theNearest([...ways.values()], node, report) : [...ways.values()];
  const [crowded] = looked.find((some) => some.length > MOST_WAYS) ?? [];
  if (crowded) report.cannotTell('rules', `the rules have more ways to ${crowded.address} than are looked at`);
  const most = Math.min(MOST_WAYS, Math.max(0, ...looked.map(({ length }) => length)));
  return Array.from({ length: most }, (_, nth) => looked.flatMap((some) => some[nth] ?? []));
}

/** Without the kernel: what the objects alone forbid. */
function lookAtPlan(question: Question, knowledge: Knowledge, target: Target, report: Report): void {
  const { source } = question;
  const ip = source.kind === 'address' ? source.address : target.ip;
  if (target.service) lookAtEndpoints({ knowledge, target, client: { kind: 'node', ip }, probe: false }, report);
  if (!report.hasFailed) report.cannotTell('rules', 'the objects allow it; the kernel was not asked (offline)');
  report.notChecked('the kernel');
}

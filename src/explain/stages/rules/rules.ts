import { formatIpPort, parseIp, withPort } from '../../../core/index.ts';
import type { Branch } from '../../choices.ts';
import { type NodeView, startOf } from '../../node/index.ts';
import type { Packet } from '../../packet/index.ts';
import { type Walk, walkPacket } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Planned } from '../endpoints.ts';
import { isNobodys, isTakenHere } from '../here/heard-here.ts';
import { isHere } from '../here/is-here.ts';
import { isUnseen } from '../links/bridge.ts';
import type { Report } from '../report.ts';
import { mayBeHeardAt } from '../sockets/hearing.ts';
import { compareWithPlan, notPlanned } from './compare.ts';
import { lookAtEnds } from './ends.ts';
import { firstOf, originOf } from './first-packet.ts';
import { goalOf, isRefused, type Way, wayText, withDoubts } from './ways.ts';

/** Where no verdict comes of them, no more ways than these are looked at further. */
const MOST_WITHOUT_VERDICT = 8;

/**
 * Walks the first packet through the rules as the kernel holds them, all endpoints, and compares where it goes with the plan.
 *
 * @returns where it goes, as far as that can be told; with a gap, where the plan says it does
 */
export function lookAtRules(
  asked: Asked,
  planned: Planned | undefined,
  node: NodeView,
  report: Report,
): readonly Goal[] {
  const { target } = asked;
  if (isUnseen(asked, target, node)) {
    report.stage('others', 'ok', 'frames between pods of a bridge that shows them to no rules');
    return [{ ...goalAt(asked), masqueraded: false }];
  }
  const { gap } = node.rulesFor(target.family);
  if (gap !== undefined) {
    report.cannotTell('rules', gap);
    return plannedGoals(asked, planned);
  }
  const before = node.generation;
  const walked = (sentBefore?: Packet) =>
    walkPacket(firstOf(asked, node), startOf(originOf(asked), target.family, node), { sentBefore });
  const { branches, complete } = walked();
  if (node.generation !== before) report.notChecked('rules changed while they were read: ask again');
  if (!complete) report.doubt('the rules have more ways than are walked', 'rules');
  const goals = new Map<string, { readonly goal: Goal; readonly unknown: Branch<Walk>['choices'][] }>();
  const ends = new Set<string>();
  const ways = branches.map((branch) => ({ ...branch, goal: goalOf(branch.result) }));
  for (const { result, choices, goal } of ways) {
    if (!goal) {
      report.doubt('where the rules send the packet is not known', 'rules');
      continue;
    }
    if (result.end.kind === 'sent' || result.end.kind === 'delivered' || result.end.kind === 'no route') {
      const found = goals.get(wayText(goal)) ?? { goal, unknown: [] };
      found.unknown.push(choices.filter(({ kind }) => kind === 'unknown'));
      goals.set(wayText(goal), found);
    }
    ends.add(`${result.end.kind} ${goal.address}`);
  }
  const wanted = planned && new Set(planned.endpoints.map(({ ip, port }) => withPort(ip, port)));
  if (target.unheard && ways.every((way) => isNobodys(asked, way, node))) {
    report.fail('service', target.unheard);
    return [];
  }
  const again = (way: Way) => walked(way.result.packet).branches;
  lookAtEnds(asked, wanted, { ways, again, different: ends.size }, report);
  if (planned) {
    const taken = ways.filter((way) => isTakenHere(asked, wanted!, way, node));
    if (taken[0]) {
      const text = `packets end at ${taken[0].goal!.address}, a process of this node that is no endpoint`;
      report.doubt(`${text}: whether it answers in their place is not known here`, 'rules');
    }
    const others = ways.filter((way) => !taken.includes(way));
    if (others.length > 0) compareWithPlan({ asked, planned, wanted: wanted!, ways: others, node, report });
  }
  if (report.hasFailed) return [];
  const found = withDoubts([...goals.values()]);
  const atEndpoints = wanted ? found.filter(({ address }) => wanted.has(address)) : found;
  // What becomes of connections that go to no endpoint was told, if others do.
  const original = formatIpPort(target.ip, target.port);
  const kept = atEndpoints.length > 0 ? atEndpoints : found.filter(({ address }) => address === original);
  if (kept.length === 0) report.cannotTell('rules', 'no way through the rules is known that leads to anybody');
  if (!planned) addLedTo(kept, node, report);
  return complete ? kept : someOf(kept, node);
}

/** Of more ways than are walked no verdict comes: some show what may be wrong besides, those to endpoints of this node before others. */
function someOf(goals: readonly Goal[], node: NodeView): readonly Goal[] {
  const here = new Set(goals.filter(({ ip }) => isHere(ip, node)));
  return [...here, ...goals.filter((goal) => !here.has(goal))].slice(0, MOST_WITHOUT_VERDICT);
}

/** Where rules of others lead to several, what is wrong with one of them is its own. */
function addLedTo(goals: readonly Goal[], node: NodeView, report: Report): void {
  const led = new Map(goals.map(({ address, ip }) => [address, ip]));
  if (led.size < 2) return;
  for (const [address, ip] of led) {
    report.addEndpoint({
      address,
      node: null,
      here: isHere(ip, node),
      used: true,
      reason: 'rules of others lead there',
    });
  }
}

/** What the objects forbid the kernel may still do, before the agent has written it: whether it leads to somebody nevertheless. */
export function lookForOldWays(asked: Asked, node: NodeView, report: Report): void {
  const { target } = asked;
  const { branches } = walkPacket(firstOf(asked, node), startOf(originOf(asked), target.family, node));
  const goals = branches.filter((branch) => !isRefused(branch)).flatMap(({ result }) => goalOf(result) ?? []);
  const original = goalAt(asked).address;
  const old = goals.find((goal) => goal.address !== original && mayBeHeardAt(goal, target.protocol, node));
  if (old) report.doubt(notPlanned(old));
}

/** The address that was asked for. */
function goalAt({ target: { ip, port }, client }: Asked): Goal {
  return { address: formatIpPort(ip, port), ip, port, masqueraded: undefined, source: client.ip, byIpvs: false };
}

function plannedGoals(asked: Asked, planned: Planned | undefined): readonly Goal[] {
  if (!planned) return [goalAt(asked)];
  return planned.endpoints.map(({ ip, port }) => ({
    address: withPort(ip, port),
    ip: parseIp(ip),
    port,
    masqueraded: undefined,
    source: undefined,
    byIpvs: false,
  }));
}

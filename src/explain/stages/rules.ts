import { formatIp, parseIp } from '../../core/index.ts';
import type { Branch } from '../choices.ts';
import { hostOf, type NodeView } from '../node/index.ts';
import { type FirstPacket, GIVEN_PORTS } from '../packet/index.ts';
import { type Origin, type Walk, walkPacket } from '../walk/index.ts';
import type { Asked, Goal } from './asked.ts';
import { keyOf, type Planned } from './endpoints.ts';
import { refuseNodePort } from './find-target.ts';
import { isNobodys, isTakenHere } from './here/heard-here.ts';
import { isUnseen } from './links/bridge.ts';
import { evidenceOf, isOldProxy, isOurs, placeOf, showing, tableOf } from './place.ts';
import type { Finding, Report } from './report.ts';
import { mayBeHeardAt } from './sockets.ts';
import { deciders, goalOf, isRefused, type Way, wayText, withDoubts } from './ways.ts';

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
  const { sources, gap } = node.rulesFor(target.family);
  if (gap !== undefined) {
    report.cannotTell('rules', gap);
    return plannedGoals(asked, planned);
  }
  const before = node.generation;
  const { branches, complete } = walkPacket(firstOf(asked, node), originOf(asked), sources, hostOf(node));
  if (node.generation !== before) report.notChecked('rules changed while they were read: ask again');
  if (!complete) report.cannotTell('rules', 'the rules have more ways than are walked');
  const goals = new Map<string, { readonly goal: Goal; readonly unknown: Branch<Walk>['choices'][] }>();
  const ends = new Set<string>();
  const ways = branches.map((branch) => ({ ...branch, goal: goalOf(branch.result) }));
  for (const { result, choices, goal } of ways) {
    if (!goal) {
      report.cannotTell('rules', 'where the rules send the packet is not known');
      continue;
    }
    if (result.end.kind === 'sent' || result.end.kind === 'delivered' || result.end.kind === 'no route') {
      const found = goals.get(wayText(goal)) ?? { goal, unknown: [] };
      found.unknown.push(choices.filter(({ kind }) => kind === 'unknown'));
      goals.set(wayText(goal), found);
    }
    ends.add(`${result.end.kind} ${goal.address}`);
  }
  const wanted = planned && new Set(planned.endpoints.map(({ ip, port }) => keyOf(ip, port)));
  const { destination } = asked.knowledge;
  if (destination.kind === 'no-node-port' && ways.every((way) => isNobodys(asked, way, node))) {
    refuseNodePort(destination.port, report);
    return [];
  }
  lookAtEnds(asked, wanted, ways, ends.size, report);
  if (planned) {
    const taken = ways.filter((way) => isTakenHere(asked, wanted!, way, node));
    if (taken[0]) {
      const text = `packets end at ${taken[0].goal!.address}, a process of this node that is no endpoint`;
      report.cannotTell('rules', `${text}: whether it answers in their place is not known here`);
    }
    const others = ways.filter((way) => !taken.includes(way));
    if (others.length > 0) compare(asked, planned, wanted!, others, node, report);
  }
  if (report.hasFailed) return [];
  const found = withDoubts([...goals.values()]);
  const atEndpoints = wanted ? found.filter(({ address }) => wanted.has(address)) : found;
  // What becomes of connections that go to no endpoint was told, if others do.
  const original = keyOf(formatIp(target.ip), target.port);
  const kept = atEndpoints.length > 0 ? atEndpoints : found.filter(({ address }) => address === original);
  if (kept.length === 0) report.cannotTell('rules', 'no way through the rules is known that leads to anybody');
  return kept;
}

/** What the objects forbid the kernel may still do, before the agent has written it: whether it leads to somebody nevertheless. */
export function lookForOldWays(asked: Asked, node: NodeView, report: Report): void {
  const { target } = asked;
  const { sources } = node.rulesFor(target.family);
  const { branches } = walkPacket(firstOf(asked, node), originOf(asked), sources, hostOf(node));
  const goals = branches.filter((branch) => !isRefused(branch)).flatMap(({ result }) => goalOf(result) ?? []);
  const original = goalAt(asked).address;
  const old = goals.find((goal) => goal.address !== original && mayBeHeardAt(goal, target.protocol, node));
  if (old) report.doubt(notPlanned(old));
}

function notPlanned({ address }: Goal): string {
  return `the kernel leads to ${address}, which the plan does not have: whether it answers is not known here`;
}

/** The client's first packet. A pod and this node let their kernel choose the port; of others nobody here knows who changes it on the way. */
export function firstOf({ client, target }: Asked, node: NodeView): FirstPacket {
  const netns = client.kind === 'pod' ? client.pod.netns : undefined;
  const range = client.kind === 'outside' ? undefined : node.sysctl('net/ipv4/ip_local_port_range', netns);
  const isGiven = Number.parseInt(range ?? '0', 10) >= GIVEN_PORTS;
  const protocol = lower(target.protocol);
  const ends = { source: client.ip, destination: target.ip, destinationPort: target.port };
  return { protocol, ...ends, ...(isGiven && { sourcePort: 'given' }) };
}

/** By which interface it comes in. */
export function originOf({ client }: Asked): Origin {
  if (client.kind === 'node') return 'this host';
  if (client.kind === 'outside') return client.link;
  const { index, name } = client.pod.seenAs!;
  return { index, name };
}

export function lower(protocol: Asked['target']['protocol']): 'tcp' | 'udp' | 'sctp' {
  return protocol.toLowerCase() as 'tcp' | 'udp' | 'sctp';
}

/**
 * Drops, refusals, and what cannot be told.
 *
 * @param wanted addresses of the endpoints in the plan; undefined: no Service was asked for
 */
function lookAtEnds(
  asked: Asked,
  wanted: ReadonlySet<string> | undefined,
  ways: readonly Way[],
  different: number,
  report: Report,
): void {
  const { mode } = asked.knowledge;
  const isOnlyToEndpoints = ways.every((way) => isRefused(way) || (way.goal && wanted?.has(way.goal.address)));
  const isDecided = different > 1 && !ways.every(isRefused);
  const deciding = deciders(ways);
  let passed = 0;
  for (const way of ways) {
    const { result } = way;
    const { end } = result;
    if (end.kind === 'cannot tell') {
      const where = end.at ? ` past ${placeOf(end.at)}` : '';
      report.cannotTell('others', `cannot tell${where}: ${end.about} is not simulated`);
    } else if (isRefused(way)) {
      const last = result.steps.at(-1)!;
      // Of a Service that is compared with the plan.
      if (wanted && isOurs(last, mode)) continue;
      // One of both is true: the rule decides it.
      const unknown = isDecided ? deciding(way) : undefined;
      if (unknown !== undefined) {
        const text = `${placeOf(last)} decides by ${unknown}`;
        if (isOnlyToEndpoints && isLost(way, ways, wanted))
          report.mayFailEndpoint('others', way.goal.address, refusal(asked, result), text);
        else report.cannotTell('others', text);
      } else failWay(way, ways, wanted, 'others', refusal(asked, result), report);
    } else passed++;
  }
  if (passed === ways.length) {
    const foreign = ways[0]?.result.steps.filter((step) => !isOurs(step, mode)) ?? [];
    const others = [...new Set(foreign.map(tableOf))];
    report.stage(
      'others',
      'ok',
      others.length === 0 ? 'no rules of others are in the way' : `${others.join(', ')} let it pass`,
    );
  }
}

/** Whether connections that get the endpoint at its end are refused on all ways there. */
function isLost(
  way: Way,
  ways: readonly Way[],
  wanted: ReadonlySet<string> | undefined,
): way is Way & { readonly goal: Goal } {
  const { goal } = way;
  if (!goal || !wanted?.has(goal.address)) return false;
  return ways.every((other) => other.goal?.address !== goal.address || isRefused(other));
}

/** What ends on one way is lost to all connections, to those of its endpoint, or to those that chance sends there. */
function failWay(
  way: Way,
  ways: readonly Way[],
  wanted: ReadonlySet<string> | undefined,
  stage: 'others' | 'rules',
  finding: Finding,
  report: Report,
): void {
  const evidence = evidenceOf(way.result.steps.at(-1)!);
  if (ways.every(isRefused)) report.fail(stage, finding, evidence);
  else if (isLost(way, ways, wanted)) report.failEndpoint(stage, way.goal.address, finding, evidence);
  else report.failPartly(stage, { ...finding, text: `by chance ${finding.text}` }, evidence);
}

function refusalText({ end, steps }: Walk): string {
  return `${end.kind === 'reject' ? `refused (${end.how})` : 'dropped'} by ${placeOf(steps.at(-1)!)}`;
}

function refusal({ target, knowledge }: Asked, walk: Walk): Finding {
  const last = walk.steps.at(-1)!;
  const text = refusalText(walk);
  const remedy = [showing(last)];
  if (isOurs(last, knowledge.mode)) {
    if (walk.steps.every(({ chain }) => chain.name !== OF_CLUSTER_IPS))
      return { code: 'drift', text, remedy: [WHO_CHANGED_IT, ...remedy] };
    const why = `no Service has the address ${formatIp(target.ip)}: ${text}`;
    return { code: 'no-such-port', text: why, remedy: ['kubectl get services -A   # and use an address of one'] };
  }
  if (isOldProxy(last, knowledge.mode)) return { code: 'old-proxy', text, remedy: ['nodeplane cleanup', ...remedy] };
  const wasTranslated = walk.packet.ends.destination.equals(target.ip.bytes) === false;
  const isOfHost = last.hook === 'input' && (wasTranslated || !target.service);
  return { code: isOfHost ? 'host-endpoint' : 'foreign-drop', text, remedy };
}

/** Whether the kernel translates as planned. */
function compare(
  asked: Asked,
  planned: Planned,
  wanted: ReadonlySet<string>,
  ways: readonly Way[],
  node: NodeView,
  report: Report,
): void {
  const { target, knowledge } = asked;
  const { service, port } = target.service!;
  const family = knowledge.families.find((one) => one.family === target.family)!;
  const original = keyOf(formatIp(target.ip), target.port);
  const isTranslated = ({ address }: Goal) => address !== original || wanted.has(original);
  const reached = new Set(ways.flatMap(({ goal }) => (goal && isTranslated(goal) ? [goal.address] : [])));
  const untranslated = ways.filter(({ goal }) => goal && !isTranslated(goal));
  /** What somebody else drops was told. */
  const lost = ways.filter((way) =>
    isRefused(way) ? isOurs(way.result.steps.at(-1)!, knowledge.mode) : way.goal && !isTranslated(way.goal),
  );
  const extra = [...reached].filter((one) => !wanted.has(one));
  const missing = [...wanted].filter((one) => !reached.has(one));
  const held = port.affinitySeconds > 0 && reached.size === 1;
  /** Of a way that could not be followed to its end nobody can say what else it would have led to. */
  const isWhole = ways.every(({ result }) => result.end.kind !== 'cannot tell');
  const [failing] = family.failing ? [family.failing] : [];
  const none = (finding: Finding): void => report.fail('rules', finding);
  const partly = (finding: Finding): void => report.failPartly('rules', finding);
  /** @param tell that no connection works, unless some do */
  const drifts = (text: string, tell: (finding: Finding) => void): void => {
    if (failing || port.leftOut !== null) {
      const why = port.leftOut ?? `syncs fail for ${Math.round(failing!.seconds)} s: ${failing!.reason}`;
      tell({ code: 'agent-behind', text: `${text}; ${why}`, remedy: ['nodeplane status'] });
    } else if (service.changedSecondsAgo !== null && service.changedSecondsAgo < JUST_NOW_SECONDS) {
      report.cannotTell(
        'rules',
        `${text}; ${service.name} changed ${service.changedSecondsAgo.toFixed(1)} s ago and is being written`,
      );
    } else tell({ code: 'drift', text, remedy: [WHO_CHANGED_IT] });
  };
  const differs = (text: string, tell = none): void => {
    const foreign = untranslated.flatMap(({ result }) => result.steps).find((step) => isOldProxy(step, knowledge.mode));
    if (!foreign) drifts(text, tell);
  };
  const led = ways.flatMap(({ goal }) => (goal && extra.includes(goal.address) ? [goal] : []));
  const alive = led.find((goal) => mayBeHeardAt(goal, target.protocol, node));
  if (alive) {
    report.cannotTell('rules', notPlanned(alive));
  } else if (extra.length > 0 && held) {
    const text = `affinity holds ${formatIp(asked.client.ip)} at ${extra[0]}, which is no endpoint in use any more (for up to ${port.affinitySeconds} s)`;
    report.fail('rules', { code: 'affinity', text });
  } else if (extra.length > 0) {
    const other = ways
      .flatMap(({ result }) => result.steps)
      .find((step) => isOldProxy(step, knowledge.mode) && step.rule);
    const isAll = extra.length === reached.size;
    const unsure = ways
      .filter(({ goal }) => goal && extra.includes(goal.address))
      .flatMap(({ choices }) => choices)
      .find(({ kind }) => kind === 'unknown');
    if (unsure && !isAll) {
      const by = other ? `${placeOf(other)} of another proxy` : 'the kernel';
      report.cannotTell('rules', `it may be that ${by} leads to ${extra.slice(0, 3).join(', ')}, by ${unsure.about}`);
    } else if (other) {
      const remedy = ['nodeplane cleanup', showing(other)];
      report.fail(
        'rules',
        { code: 'old-proxy', text: `${placeOf(other)} of another proxy leads to ${extra.join(', ')}`, remedy },
        evidenceOf(other),
      );
    } else {
      const text = `the kernel leads to ${extra.slice(0, 3).join(', ')}, which the plan does not have`;
      differs(text, isAll ? none : partly);
    }
  } else if (!isWhole && (untranslated.length > 0 || missing.length > 0)) {
    // Why the way ends was told.
  } else if (planned.verdict === 'forward' && untranslated.length > 0 && reached.size === 0) {
    if (lost.length > 0) differs(`the kernel does not translate ${original}, the plan has ${wanted.size} endpoints`);
  } else if (planned.verdict === 'forward' && (lost.length > 0 || (missing.length > 0 && !held))) {
    if (missing.length > 0 && !held && wanted.size === planned.endpoints.length)
      differs(`the kernel does not lead to ${missing.slice(0, 3).join(', ')}, which the plan has`, (finding) => {
        for (const address of missing) report.failEndpoint('rules', address, finding);
      });
    for (const way of lost) {
      const how = isRefused(way) ? refusalText(way.result) : `${original} is not translated`;
      const unknown = way.choices.find(({ kind }) => kind === 'unknown');
      if (unknown) report.cannotTell('rules', `it may be that ${how}, by ${unknown.about}`);
      else drifts(how, (finding) => failWay(way, ways, wanted, 'rules', finding, report));
    }
  } else if (planned.verdict === 'forward' || reached.size > 0) {
    const age = family.writtenSecondsAgo;
    if (held) report.holdAt([...reached][0]!);
    const text = `plan = kernel: ${reached.size} endpoints${held && wanted.size > 1 ? ', held at one by affinity' : ''}${age === null ? '' : `; last written ${Math.round(age)} s ago`}`;
    report.stage('rules', 'ok', text);
  } else if (failing) differs(`the plan has no endpoints for ${original}`);
}

/** Our chain in mode nftables for packets to addresses of ServiceCIDRs that nobody has translated (fixed-chains.ts of its compiler). */
const OF_CLUSTER_IPS = 'check-cluster-ips';
const WHO_CHANGED_IT = 'nodeplane status   # the agent repairs it; look who changed it';
/** A change is written within a second when nothing is in the way. */
const JUST_NOW_SECONDS = 3;

/** The address that was asked for. */
function goalAt({ target: { ip, port }, client }: Asked): Goal {
  return { address: keyOf(formatIp(ip), port), ip, port, masqueraded: undefined, source: client.ip, byIpvs: false };
}

function plannedGoals(asked: Asked, planned: Planned | undefined): readonly Goal[] {
  if (!planned) return [goalAt(asked)];
  return planned.endpoints.map(({ ip, port }) => ({
    address: keyOf(ip, port),
    ip: parseIp(ip),
    port,
    masqueraded: undefined,
    source: undefined,
    byIpvs: false,
  }));
}

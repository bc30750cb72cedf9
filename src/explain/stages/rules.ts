import { formatIp, ipFromBytes, parseIp, readBe16, readU32 } from '../../core/index.ts';
import type { Branch } from '../choices.ts';
import { hostOf, type NodeView } from '../node/index.ts';
import { type Origin, type Step, type Walk, walkPacket } from '../walk/index.ts';
import type { Asked, Goal } from './asked.ts';
import { keyOf, type Planned } from './endpoints.ts';
import { evidenceOf, isOldProxy, isOurs, placeOf, showing, tableOf } from './place.ts';
import type { Finding, Report } from './report.ts';

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
  const { sources, gap } = node.rulesFor(target.family);
  if (gap !== undefined) {
    report.cannotTell('rules', gap);
    return plannedGoals(asked, planned);
  }
  const before = node.generation;
  const { branches, complete } = walkPacket(
    { protocol: lower(target.protocol), source: asked.client.ip, destination: target.ip, destinationPort: target.port },
    originOf(asked),
    sources,
    hostOf(node),
  );
  if (node.generation !== before) report.notChecked('rules changed while they were read: ask again');
  if (!complete) report.cannotTell('rules', 'the rules have more ways than are walked');
  const goals = new Map<string, Goal>();
  const ends = new Set<string>();
  for (const { result } of branches) {
    const goal = goalOf(result);
    if (!goal) {
      report.cannotTell('rules', 'where the rules send the packet is not known');
      continue;
    }
    if (result.end.kind === 'sent' || result.end.kind === 'delivered' || result.end.kind === 'no route') {
      goals.set(goal.address, goal);
    }
    ends.add(`${result.end.kind} ${goal.address}`);
  }
  lookAtEnds(asked, branches, ends.size, report);
  if (planned) compare(asked, planned, branches, report);
  if (report.hasFailed) return [];
  // What becomes of connections that go to no endpoint at all was told.
  const wanted =
    planned &&
    new Set([keyOf(formatIp(target.ip), target.port), ...planned.endpoints.map(({ ip, port }) => keyOf(ip, port))]);
  return [...goals.values()].filter(({ address }) => !wanted || wanted.has(address));
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

/** Drops, refusals, and what cannot be told. */
function lookAtEnds(asked: Asked, branches: readonly Branch<Walk>[], different: number, report: Report): void {
  const { mode } = asked.knowledge;
  let passed = 0;
  for (const { result, choices } of branches) {
    const { end } = result;
    const unknown = choices.find(({ kind }) => kind === 'unknown');
    if (end.kind === 'cannot tell') {
      const where = end.at ? ` past ${placeOf(end.at)}` : '';
      report.cannotTell('others', `cannot tell${where}: ${end.about} is not simulated`);
    } else if (end.kind === 'drop' || end.kind === 'reject') {
      const last = result.steps.at(-1)!;
      if (isOurs(last, mode)) continue;
      // One of both is true: the rule decides it.
      if (unknown && different > 1) report.cannotTell('others', `${placeOf(last)} decides by ${unknown.about}`);
      else report.fail('others', refusal(asked, result, last), evidenceOf(last));
    } else passed++;
  }
  if (passed === branches.length) {
    const foreign = branches[0]?.result.steps.filter((step) => !isOurs(step, mode)) ?? [];
    const others = [...new Set(foreign.map(tableOf))];
    report.stage(
      'others',
      'ok',
      others.length === 0 ? 'no rules of others are in the way' : `${others.join(', ')} let it pass`,
    );
  }
}

function refusal({ target, knowledge }: Asked, { packet, end }: Walk, last: Step): Finding {
  const how = end.kind === 'reject' ? `refused (${end.how})` : 'dropped';
  const text = `${how} by ${placeOf(last)}`;
  const remedy = [showing(last)];
  const isLocal = last.hook === 'input';
  if (isOldProxy(last, knowledge.mode)) return { code: 'old-proxy', text, remedy: ['nodeplane cleanup', ...remedy] };
  const wasTranslated = packet.ends.destination.equals(target.ip.bytes) === false;
  return { code: isLocal && (wasTranslated || !target.service) ? 'host-endpoint' : 'foreign-drop', text, remedy };
}

/** Where a packet went; undefined: its address is not known. */
function goalOf({ packet, steps, routedBy }: Walk): Goal | undefined {
  const { source, destination, destinationPort } = packet.ends;
  if (!destination.isKnown || !destinationPort.isKnown) return undefined;
  const ip = ipFromBytes(destination.bytes);
  const port = readBe16(destinationPort.bytes, 0);
  const { connection } = packet;
  const original = connection && connection !== 'untracked' ? connection.original.source : source;
  const masqueraded = negate(source.equals(original.bytes));
  return {
    address: keyOf(formatIp(ip), port),
    ip,
    port,
    masqueraded,
    source: source.isKnown ? ipFromBytes(source.bytes) : undefined,
    byIpvs: steps.some((step) => step.source === 'ipvs'),
    mark: routedBy.isKnown ? readU32(routedBy.bytes, 0) || undefined : undefined,
  };
}

function negate(value: boolean | undefined): boolean | undefined {
  return value === undefined ? undefined : !value;
}

/** Whether the kernel translates as planned. */
function compare(asked: Asked, planned: Planned, branches: readonly Branch<Walk>[], report: Report): void {
  const { target, knowledge } = asked;
  const { service, port } = target.service!;
  const family = knowledge.families.find((one) => one.family === target.family)!;
  const original = keyOf(formatIp(target.ip), target.port);
  const wanted = new Set(planned.endpoints.map(({ ip, port: number }) => keyOf(ip, number)));
  const ended = branches.map(({ result }) => ({ walk: result, at: goalOf(result)?.address }));
  const reached = new Set(ended.flatMap(({ at }) => (at === undefined || at === original ? [] : [at])));
  const untranslated = ended.filter(({ at }) => at === original);
  const extra = [...reached].filter((one) => !wanted.has(one));
  const missing = [...wanted].filter((one) => !reached.has(one));
  const held = port.affinitySeconds > 0 && reached.size === 1;
  /** Of a way that could not be followed to its end nobody can say what else it would have led to. */
  const isWhole = branches.every(({ result }) => result.end.kind !== 'cannot tell');
  const [failing] = family.failing ? [family.failing] : [];
  const none = (finding: Finding): void => report.fail('rules', finding);
  /** @param tell that no connection works, unless some do */
  const differs = (text: string, tell = none): void => {
    const foreign = untranslated.flatMap(({ walk }) => walk.steps).find((step) => isOldProxy(step, knowledge.mode));
    if (foreign) return;
    if (failing || port.leftOut !== null) {
      const why = port.leftOut ?? `syncs fail for ${Math.round(failing!.seconds)} s: ${failing!.reason}`;
      tell({ code: 'agent-behind', text: `${text}; ${why}`, remedy: ['nodeplane status'] });
    } else if (service.changedSecondsAgo !== null && service.changedSecondsAgo < JUST_NOW_SECONDS) {
      report.cannotTell(
        'rules',
        `${text}; ${service.name} changed ${service.changedSecondsAgo.toFixed(1)} s ago and is being written`,
      );
    } else {
      tell({
        code: 'drift',
        text,
        remedy: ['nodeplane status   # the agent repairs it; look who changed it'],
      });
    }
  };
  if (extra.length > 0 && held) {
    const text = `affinity holds ${formatIp(asked.client.ip)} at ${extra[0]}, which is no endpoint in use any more (for up to ${port.affinitySeconds} s)`;
    report.fail('rules', { code: 'affinity', text });
  } else if (extra.length > 0) {
    const other = branches
      .flatMap(({ result }) => result.steps)
      .find((step) => isOldProxy(step, knowledge.mode) && step.rule);
    if (other) {
      const remedy = ['nodeplane cleanup', showing(other)];
      report.fail(
        'rules',
        { code: 'old-proxy', text: `${placeOf(other)} of another proxy leads to ${extra.join(', ')}`, remedy },
        evidenceOf(other),
      );
    } else {
      const isAll = extra.length === reached.size;
      const text = `the kernel leads to ${extra.slice(0, 3).join(', ')}, which the plan does not have`;
      differs(text, isAll ? none : (finding) => report.failPartly('rules', finding));
    }
  } else if (!isWhole && (untranslated.length > 0 || missing.length > 0)) {
    // Why the way ends was told.
  } else if (planned.verdict === 'forward' && untranslated.length > 0 && reached.size === 0) {
    const [first] = untranslated;
    const last = first!.walk.steps.at(-1);
    const dropped = first!.walk.end.kind === 'drop' || first!.walk.end.kind === 'reject';
    // Dropped by somebody before translation: that is the cause, and was told.
    if (!dropped || (last && isOurs(last, knowledge.mode)))
      differs(`the kernel does not translate ${original}, the plan has ${wanted.size} endpoints`);
  } else if (missing.length > 0 && !held && planned.verdict === 'forward') {
    if (wanted.size === planned.endpoints.length)
      differs(`the kernel does not lead to ${missing.slice(0, 3).join(', ')}, which the plan has`, (finding) => {
        for (const address of missing) report.failEndpoint('rules', address, finding);
      });
  } else if (planned.verdict === 'forward' || reached.size > 0) {
    const age = family.writtenSecondsAgo;
    const text = `plan = kernel: ${reached.size} endpoints${held && wanted.size > 1 ? ', held at one by affinity' : ''}${age === null ? '' : `; last written ${Math.round(age)} s ago`}`;
    report.stage('rules', 'ok', text);
  } else if (failing) differs(`the plan has no endpoints for ${original}`);
}

/** A change is written within a second when nothing is in the way. */
const JUST_NOW_SECONDS = 3;

function plannedGoals({ target, client }: Asked, planned: Planned | undefined): readonly Goal[] {
  if (!planned) {
    return [
      {
        address: keyOf(formatIp(target.ip), target.port),
        ip: target.ip,
        port: target.port,
        masqueraded: undefined,
        source: client.ip,
        byIpvs: false,
      },
    ];
  }
  return planned.endpoints.map(({ ip, port }) => ({
    address: keyOf(ip, port),
    ip: parseIp(ip),
    port,
    masqueraded: undefined,
    source: undefined,
    byIpvs: false,
  }));
}

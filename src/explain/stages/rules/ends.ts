import { formatIp } from '../../../core/index.ts';
import type { Branch } from '../../choices.ts';
import type { Walk } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { evidenceOf, isOldProxy, isOurs, placeOf, removing, showing, tableOf } from '../place.ts';
import type { Finding, Report } from '../report.ts';
import { repairing } from './drift.ts';
import { byOwnPolicy, isOwnPolicy } from './own-policy.ts';
import { deciders, goalOf, isRefused, type Way } from './ways.ts';

/** Our chain in mode nftables for packets to addresses of ServiceCIDRs that nobody has translated (fixed-chains.ts of its compiler). */
const OF_CLUSTER_IPS = 'check-cluster-ips';

/** What became of a first packet. */
export interface Walked {
  readonly ways: readonly Way[];
  /** The ways of the same packet, sent again after it was dropped on one of them. */
  readonly again: (way: Way) => readonly Branch<Walk>[];
  /** How many of the ways end otherwise than others. */
  readonly different: number;
}

/**
 * Drops, refusals, and what cannot be told.
 *
 * @param wanted addresses of the endpoints in the plan; undefined: no Service was asked for
 */
export function lookAtEnds(
  asked: Asked,
  wanted: ReadonlySet<string> | undefined,
  { ways, again, different }: Walked,
  report: Report,
): void {
  const { mode } = asked.knowledge;
  const isOnlyToEndpoints = ways.every((way) => isRefused(way) || (way.goal && wanted?.has(way.goal.address)));
  const isDecided = different > 1 && !ways.every(isRefused);
  const deciding = deciders(ways);
  const tellRefusal = (way: Way): void => {
    const finding = refusal(asked, way.result);
    // One of both is true: the rule decides it.
    const unknown = isDecided ? deciding(way) : undefined;
    if (unknown === undefined) {
      if (isSentAnew(way, asked) && isDecided && !isLost(way, ways, wanted))
        report.cannotTell(
          'others',
          `it may be that ${finding.text}, which counts packets: what is sent again may pass`,
        );
      else if (isRemembered(way, again, wanted))
        report.cannotTell(
          'others',
          `${finding.text}, and rules before that remember it in a set: what is sent again may pass`,
        );
      else failWay(way, ways, wanted, 'others', finding, report);
      return;
    }
    const text = `${placeOf(way.result.steps.at(-1)!)} decides by ${unknown}`;
    if (isOnlyToEndpoints && isLost(way, ways, wanted))
      report.mayFailEndpoint('others', way.goal.address, finding, text);
    else report.cannotTell('others', text);
  };
  let passed = 0;
  for (const way of ways) {
    const { end, steps } = way.result;
    if (end.kind === 'cannot tell') {
      const where = end.at ? ` past ${placeOf(end.at)}` : '';
      report.doubt(`cannot tell${where}: ${end.about} is not simulated`, 'others');
    } else if (!isRefused(way)) passed++;
    // What our own rules refuse of a Service is compared with the plan.
    else if (!wanted || !isOurs(steps.at(-1)!, mode) || isOwnPolicy(steps.at(-1)!)) tellRefusal(way);
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

/** Whether what a rule has dropped that counts packets comes again, and counts anew. */
function isSentAnew({ choices, result }: Way, { target }: Asked): boolean {
  return target.protocol !== 'UDP' && result.end.kind === 'drop' && choices.some(({ kind }) => kind === 'turn');
}

/** Whether a packet that was dropped passes when it is sent again, by what rules have put into sets for it. */
function isRemembered(way: Way, again: Walked['again'], wanted: ReadonlySet<string> | undefined): boolean {
  const { end, packet } = way.result;
  if (end.kind !== 'drop' || packet.changedSets.size === 0) return false;
  // One that is dropped before it is translated may get any endpoint.
  const address = way.goal && wanted?.has(way.goal.address) ? way.goal.address : undefined;
  return again(way).some(
    (later) => !isRefused(later) && (address === undefined || goalOf(later.result)?.address === address),
  );
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
export function failWay(
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

/** How a walk ended that was dropped or refused, and by which rule. */
export function refusalText({ end, steps }: Walk): string {
  return `${end.kind === 'reject' ? `refused (${end.how})` : 'dropped'} by ${placeOf(steps.at(-1)!)}`;
}

function refusal({ target, knowledge }: Asked, walk: Walk): Finding {
  const last = walk.steps.at(-1)!;
  const text = refusalText(walk);
  const remedy = [showing(last)];
  const policy = byOwnPolicy(last, text, knowledge);
  if (policy) return policy;
  if (isOurs(last, knowledge.mode)) {
    if (walk.steps.every(({ chain }) => chain.name !== OF_CLUSTER_IPS))
      return { code: 'drift', text, remedy: [...repairing(knowledge), ...remedy] };
    const why = `no Service has the address ${formatIp(target.ip)}: ${text}`;
    return { code: 'no-such-port', text: why, remedy: ['kubectl get services -A'] };
  }
  if (isOldProxy(last, knowledge.mode)) return { code: 'old-proxy', text, remedy: removing(last, knowledge.mode) };
  const wasTranslated = walk.packet.ends.destination.equals(target.ip.bytes) === false;
  const isOfHost = last.hook === 'input' && (wasTranslated || !target.service);
  return { code: isOfHost ? 'host-endpoint' : 'foreign-drop', text, remedy };
}

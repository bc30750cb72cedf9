import { formatIp, formatIpPort } from '../../../core/index.ts';
import { knownFamily } from '../../knowledge/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Step } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import type { Planned } from '../endpoints.ts';
import { evidenceOf, isOldProxy, isOurs, placeOf, removing, showing } from '../place.ts';
import type { Finding, Report } from '../report.ts';
import { mayBeHeardAt } from '../sockets/hearing.ts';
import { translates } from './doing.ts';
import { repairing, tellDrift } from './drift.ts';
import { failWay, refusalText } from './ends.ts';
import { keptOutOfTracking } from './kept-out.ts';
import { isOwnPolicy } from './own-policy.ts';
import { isRefused, type Way } from './ways.ts';

/** What is compared. */
interface Compared {
  readonly asked: Asked;
  readonly planned: Planned;
  /** Addresses of the plan's endpoints. */
  readonly wanted: ReadonlySet<string>;
  /** All ways of the packet through the rules. */
  readonly ways: readonly Way[];
  readonly node: NodeView;
  readonly report: Report;
}

interface Difference {
  /** The Service's address and port. */
  readonly original: string;
  /** Where the kernel leads. */
  readonly reached: ReadonlySet<string>;
  /** Of these who is no endpoint of the plan, */
  readonly extra: readonly string[];
  /** and endpoints that are not among them. */
  readonly missing: readonly string[];
  readonly untranslated: readonly Way[];
  /** Those, and what our own rules refuse: what somebody else drops was told. */
  readonly lost: readonly Way[];
  /** Affinity holds the client at the one endpoint that it reaches. */
  readonly isHeld: boolean;
  /** Of a way that could not be followed to its end nobody can say what else it would have led to. */
  readonly isWhole: boolean;
}

/** Whether the kernel translates as planned. */
export function compareWithPlan(compared: Compared): void {
  const { asked, planned, report } = compared;
  const difference = differenceOf(compared);
  const { original, reached, extra, missing, untranslated, lost, isHeld, isWhole } = difference;
  const isForwarded = planned.verdict === 'forward';
  if (extra.length > 0) tellExtra(compared, difference);
  else if (!isWhole && (untranslated.length > 0 || missing.length > 0))
    return; // Why the way ends was told.
  else if (isForwarded && untranslated.length > 0 && reached.size === 0) {
    const text = `the kernel does not translate ${original}, the plan has ${compared.wanted.size} endpoints`;
    if (lost.length > 0) tellDifference(compared, difference, text, (finding) => report.fail('rules', finding));
  } else if (isForwarded && (lost.length > 0 || (missing.length > 0 && !isHeld))) tellLacking(compared, difference);
  else if (isForwarded || reached.size > 0) tellSame(compared, difference);
  else if (knownFamily(asked.knowledge, asked.target.family)!.failing) {
    const text = `the plan has no endpoints for ${original}`;
    tellDifference(compared, difference, text, (finding) => report.fail('rules', finding));
  }
}

function differenceOf({ asked: { target, knowledge }, wanted, ways }: Compared): Difference {
  const original = formatIpPort(target.ip, target.port);
  const isTranslated = ({ address }: Goal) => address !== original || wanted.has(original);
  const isUntranslated = ({ goal }: Way) => goal !== undefined && !isTranslated(goal);
  const isOfServices = (step: Step) => isOurs(step, knowledge.mode) && !isOwnPolicy(step);
  const reached = new Set(ways.flatMap(({ goal }) => (goal && isTranslated(goal) ? [goal.address] : [])));
  return {
    original,
    reached,
    extra: [...reached].filter((one) => !wanted.has(one)),
    missing: [...wanted].filter((one) => !reached.has(one)),
    untranslated: ways.filter(isUntranslated),
    lost: ways.filter((way) => (isRefused(way) ? isOfServices(way.result.steps.at(-1)!) : isUntranslated(way))),
    isHeld: target.service!.port.affinitySeconds > 0 && reached.size === 1,
    isWhole: ways.every(({ result }) => result.end.kind !== 'cannot tell'),
  };
}

/** The kernel leads to who is no endpoint of the plan. */
function tellExtra(compared: Compared, difference: Difference): void {
  const { asked, ways, node, report } = compared;
  const { extra, reached } = difference;
  const led = ways.filter(({ goal }) => goal && extra.includes(goal.address));
  const shown = extra.slice(0, 3).join(', ');
  const alive = led.find(({ goal }) => mayBeHeardAt(goal!, asked.target.protocol, node));
  const byOthers = (way: Way) =>
    way.result.steps.findLast((step) => translates(step) && !isOurs(step, asked.knowledge.mode));
  if (alive) {
    const by = byOthers(alive);
    report.doubt(notPlanned(alive.goal!, by ? `${placeOf(by)}, which is not nodeplane’s,` : undefined), 'rules');
    return;
  }
  if (difference.isHeld) {
    const { affinitySeconds } = asked.target.service!.port;
    const who = `affinity holds ${formatIp(asked.client.ip)} at ${extra[0]}`;
    const text = `${who}, which is no endpoint in use any more (for up to ${affinitySeconds} s)`;
    report.fail('rules', { code: 'affinity', text, remedy: repairing(asked.knowledge) });
    return;
  }
  const other = ways
    .flatMap(({ result }) => result.steps)
    .find((step) => isOldProxy(step, asked.knowledge.mode) && step.rule);
  const isAll = extra.length === reached.size;
  const tell = (finding: Finding) => (isAll ? report.fail('rules', finding) : report.failPartly('rules', finding));
  const theirs = led.length > 0 && led.every(byOthers) ? byOthers(led[0]!) : undefined;
  const unsure = led.flatMap(({ choices }) => choices).find(({ kind }) => kind === 'unknown');
  if (unsure && !isAll) {
    const by = other ? `${placeOf(other)} of another proxy` : 'the kernel';
    report.cannotTell('rules', `it may be that ${by} leads to ${shown}, by ${unsure.about}`);
  } else if (other) {
    const text = `${placeOf(other)} of another proxy leads to ${extra.join(', ')}`;
    report.fail('rules', { code: 'old-proxy', text, remedy: removing(other, asked.knowledge.mode) }, evidenceOf(other));
  } else if (theirs) {
    const text = `${placeOf(theirs)} leads to ${shown}, where nobody listens`;
    tell({ code: 'foreign-drop', text, remedy: [showing(theirs)] });
  } else tellDifference(compared, difference, `the kernel leads to ${shown}, which the plan does not have`, tell);
}

/** To some endpoints the kernel does not lead, or some connections are not translated. */
function tellLacking(compared: Compared, difference: Difference): void {
  const { asked, planned, wanted, ways, node, report } = compared;
  const { original, missing, lost, isHeld } = difference;
  if (missing.length > 0 && !isHeld && wanted.size === planned.endpoints.length) {
    const text = `the kernel does not lead to ${missing.slice(0, 3).join(', ')}, which the plan has`;
    tellDifference(compared, difference, text, (finding) => {
      for (const address of missing) report.failEndpoint('rules', address, finding);
    });
  }
  for (const way of lost) {
    const how = isRefused(way) ? refusalText(way.result) : `${original} is not translated`;
    const unknown = way.choices.find(({ kind }) => kind === 'unknown');
    if (unknown) report.cannotTell('rules', `it may be that ${how}, by ${unknown.about}`);
    else {
      const tell = (finding: Finding) => failWay(way, ways, wanted, 'rules', finding, report);
      const kept = keptOutOfTracking(asked, [way], node);
      if (kept) tell(kept);
      else tellDrift(asked, how, report, tell);
    }
  }
}

function tellSame({ asked, wanted, report }: Compared, { reached, isHeld }: Difference): void {
  if (isHeld) report.holdAt([...reached][0]!);
  const held = isHeld && wanted.size > 1 ? ', held at one by affinity' : '';
  const { writtenSecondsAgo: age } = knownFamily(asked.knowledge, asked.target.family)!;
  const written = age === null ? '' : `; last written ${Math.round(age)} s ago`;
  report.stage('rules', 'ok', `plan = kernel: ${reached.size} endpoints${held}${written}`);
}

/**
 * As drift, unless rules of others keep packets out of connection tracking, or another proxy's are on the way: what
 * they do is told by itself.
 */
function tellDifference(
  { asked, node, report }: Compared,
  { untranslated }: Difference,
  text: string,
  tell: (finding: Finding) => void,
): void {
  const kept = keptOutOfTracking(asked, untranslated, node);
  if (kept) {
    tell(kept);
    return;
  }
  const steps = untranslated.flatMap(({ result }) => result.steps);
  if (!steps.some((step) => isOldProxy(step, asked.knowledge.mode))) tellDrift(asked, text, report, tell);
}

/** Whether a rule may be who led a packet elsewhere: it ends the translation of destinations. */
/** What is said of an address to which the kernel, or a rule in it, leads and the plan does not. */
export function notPlanned({ address }: Goal, by = 'the kernel'): string {
  return `${by} leads to ${address}, which the plan does not have: whether it answers is not known here`;
}

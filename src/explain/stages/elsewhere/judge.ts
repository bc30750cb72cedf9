import { formatIp } from '../../../core/index.ts';
import type { AttemptResult, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { strayed } from '../peer.ts';
import type { Report } from '../report.ts';
import { lookAtLarge } from './large.ts';
import { hindranceOf, isSpread, type Seat, seatOf, type Tried, tryAll } from './seat.ts';
import { Silence } from './silence.ts';

/** Of the source, not even one to share with connections to others. */
const NO_PORT = 'EADDRINUSE';

/** An endpoint that was not tried, and why; undefined: nobody here could. */
export interface Untried {
  readonly goal: Goal;
  readonly why: string | undefined;
}

/** Tries endpoints, and says of each what came of it. @returns those that it could not try */
export function judgeAttempts(
  asked: Asked,
  goals: readonly Goal[],
  node: NodeView,
  report: Report,
): readonly Untried[] {
  const { protocol } = asked.target;
  const untried: Untried[] = [];
  const seated: { readonly goal: Goal; readonly seat: Seat }[] = [];
  for (const goal of goals) {
    const seat = seatOf(asked, goal, node);
    const why = seat && hindranceOf(asked, goal, seat, node);
    if (!seat || why !== undefined) untried.push({ goal, why });
    else seated.push({ goal, seat });
  }
  if (protocol === 'SCTP') return untried;
  const trials = seated.map(({ goal: { ip, port }, seat }) => {
    const hasOthers = (node.wayOut(ip)?.others.length ?? 0) > 0;
    return Array.from({ length: hasOthers && isSpread(ip, node) ? TRIES_OF_SPREAD : 1 }, () => ({
      seat,
      protocol,
      ip,
      port,
    }));
  });
  const results = tryAll(trials.flat());
  const tried = seated.flatMap((one, index): Tried[] => {
    const own = results.splice(0, trials[index]!.length);
    const result = own.find((each) => !isOpen(each)) ?? own[0]!;
    if (own.length === 1 || !own.some(isOpen)) return [{ ...one, result }];
    tellSome(one.goal, own, node, report);
    return [];
  });
  const silence = new Silence(
    asked,
    tried.filter(({ result }) => !isOpen(result) && result !== NO_PORT),
    node,
  );
  for (const one of tried) {
    const { goal, result } = one;
    if (result === NO_PORT) untried.push({ goal, why: 'no port was free for an attempt' });
    else if (isOpen(result)) tellOpen(asked, one, node, report);
    else tellFailed(one, silence, report);
  }
  lookAtLarge(
    asked,
    tried.filter(({ result }) => isOpen(result)),
    node,
    report,
  );
  return untried;
}

/** Of so many connections each of a few next hops gets some, all but for certain. */
const TRIES_OF_SPREAD = 16;

/** Some or all of several attempts were answered: those that got a next hop which leads there. */
function tellSome({ address, ip }: Goal, results: readonly AttemptResult[], node: NodeView, report: Report): void {
  const way = node.wayOut(ip)!;
  const hops = [way, ...way.others];
  const lost = results.filter((result) => !isOpen(result));
  const evidence = [{ source: 'probe', object: address, value: lost[0] ?? results[0]! }];
  const broken = hops.find((hop) => hop.broken)?.broken;
  if (lost.length > 0) {
    const why = broken?.text ?? 'of which some do not lead there';
    const text = `${lost.length} of ${results.length} connections to ${address} were not answered just now (${lost[0]}): each gets one of ${hops.length} next hops, ${why}`;
    const remedy = [`ip route get fibmatch ${formatIp(ip)}`];
    report.failPartly('endpoint', { code: broken ? 'neighbour' : 'no-answer', text, remedy }, evidence);
    return;
  }
  const text = `${results.length} connections to ${address} were answered just now`;
  // Of IPv6 the kernel avoids them for some time (rt6_check_neigh, net/ipv6/route.c).
  if (ip.family === 'IPv6' && hops.some((hop) => hop.unanswered))
    report.cannotTellEndpoint('endpoint', address, `${text}, and one of its ${hops.length} next hops does not answer`);
  else report.stage('endpoint', 'ok', text, evidence);
}

const isOpen = (result: AttemptResult) => result === 'connected' || result === 'answered';

const evidenceOf = ({ goal, result }: Tried) => [{ source: 'probe', object: goal.address, value: result }];

function tellOpen(asked: Asked, one: Tried, node: NodeView, report: Report): void {
  const { goal, result } = one;
  const way = result === 'connected' ? node.wayOut(goal.ip) : undefined;
  const strays = way && strayed(asked, goal, way, node);
  if (strays?.through !== undefined) {
    const text = `a connection to ${goal.address} was opened just now, though ${strays.finding.text}: whether ${strays.through} lets pass what follows is not known here`;
    report.cannotTellEndpoint('endpoint', goal.address, text);
  } else report.stage('endpoint', 'ok', `a connection to ${goal.address} was answered just now`, evidenceOf(one));
}

function tellFailed(one: Tried, silence: Silence, report: Report): void {
  const { address } = one.goal;
  const cause = silence.cause(one);
  if (cause) report.failEndpoint('endpoint', address, cause, evidenceOf(one));
  else
    report.cannotTellEndpoint(
      'endpoint',
      address,
      `${address} does not answer an empty datagram, which proves nothing`,
    );
}

import type { AttemptResult, NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { strayed } from '../peer.ts';
import type { Report } from '../report.ts';
import { lookAtLarge } from './large.ts';
import { hindranceOf, type Seat, seatOf, type Tried, tryAll } from './seat.ts';
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
  const results = tryAll(seated.map(({ goal: { ip, port }, seat }) => ({ seat, protocol, ip, port })));
  const tried = seated.map((one, index): Tried => ({ ...one, result: results[index]! }));
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

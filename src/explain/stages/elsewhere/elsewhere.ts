import { formatIp, formatIpPort } from '../../../core/index.ts';
import type { NodeView } from '../../node/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { asking } from '../commands.ts';
import { describeWay, strayed } from '../peer.ts';
import type { Report } from '../report.ts';
import { judgeAttempts } from './judge.ts';
import { seatOf } from './seat.ts';
import { whereabouts } from './whereabouts.ts';

// Endpoints of other nodes: what happens there is not seen from here. It is tried when that is asked for, and otherwise said where to ask.

/** Says of endpoints elsewhere up to where their way is known, or tries them. */
export function lookElsewhere(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  if (goals.length === 0) return;
  const untried = asked.probe
    ? judgeAttempts(asked, goals, node, report)
    : goals.map((goal) => ({ goal, why: undefined }));
  const [first, ...others] = untried.flatMap(({ goal, why }) => cannotTell(asked, goal, why, node, report));
  const canTry = !asked.probe && goals.some((goal) => seatOf(asked, goal, node));
  for (const command of [first, canTry && probing(asked), ...others])
    if (asked.knowledge.live && command) report.askThere(command);
  if (asked.probe) return;
  const shown = goals.slice(0, 3).map(({ address }) => address);
  report.notChecked(`processes at ${shown.join(', ')}${goals.length > 3 ? ', ...' : ''}`);
}

/**
 * @param why it was not tried, if it was meant to be
 * @returns commands that show more
 */
function cannotTell(
  asked: Asked,
  goal: Goal,
  why: string | undefined,
  node: NodeView,
  report: Report,
): readonly string[] {
  const { is, show } = whereabouts(asked, goal);
  const way = node.wayOut(goal.ip);
  const strays = way && strayed(asked, goal, way, node);
  const leaves = `${strays ? `${strays.finding.text}; ` : ''}${way ? `${describeWay(way)}; ` : ''}`;
  const text = `${goal.address} ${is}: ${leaves}${why ?? 'what happens there was not looked at'}`;
  report.cannotTellEndpoint('endpoint', goal.address, text);
  return show;
}

/** The same question, with leave to send packets. */
function probing({ target, client, knowledge }: Asked): string {
  const { ip, port, protocol } = target;
  return `${asking(formatIpPort(ip, port), { from: formatIp(client.ip), protocol }, knowledge)} --probe`;
}

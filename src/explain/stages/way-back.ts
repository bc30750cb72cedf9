import { formatIp } from '../../core/index.ts';
import { hostOf, type NodeView } from '../node/index.ts';
import { walkAnswer } from '../walk/index.ts';
import type { Asked, Goal } from './asked.ts';
import { placeOf } from './place.ts';
import type { Report } from './report.ts';
import { lower } from './rules.ts';

/** Ports of clients are not known; the walk needs one. */
const ANY_PORT = 40_000;

/** Whether answers come back through this node, where they are translated back, and through the rules of others. */
export function lookAtWayBack(asked: Asked, goals: readonly Goal[], node: NodeView, report: Report): void {
  const { client, target } = asked;
  const notes = new Set<string>();
  for (const goal of goals) {
    const isHere =
      node.isOwnAddress(formatIp(goal.ip)) || node.podsAt(formatIp(goal.ip)).some(({ outside }) => outside);
    if (client.kind === 'outside' && !isHere && goal.masqueraded === false && target.service) {
      const text = `${goal.address} answers ${formatIp(client.ip)} directly, not through this node, and nothing translates that back`;
      report.failEndpoint('way back', goal.address, { code: 'way-back', text });
      continue;
    }
    notes.add(goal.masqueraded ? 'masqueraded, answers come to this node' : 'answers come through this node');
    if (isHere) lookAtAnswer(asked, goal, node, report);
  }
  report.stage('way back', 'ok', [...notes].join('; '));
}

function lookAtAnswer({ client, target }: Asked, goal: Goal, node: NodeView, report: Report): void {
  const isHost = node.isOwnAddress(formatIp(goal.ip));
  const seenAs = node.podsAt(formatIp(goal.ip)).find(({ outside }) => outside)?.seenAs;
  const protocol = lower(target.protocol);
  const { branches } = walkAnswer(
    { protocol, source: goal.ip, sourcePort: goal.port, destination: client.ip, destinationPort: ANY_PORT },
    { protocol, source: client.ip, destination: target.ip, destinationPort: target.port },
    isHost || !seenAs ? 'this host' : { index: seenAs.index, name: seenAs.name },
    node.rulesFor(target.family).sources,
    hostOf(node),
  );
  for (const { result, choices } of branches) {
    const { end } = result;
    if (end.kind === 'cannot tell') {
      report.cannotTell('way back', `the way of answers through the rules: ${end.about}`);
    } else if (end.kind === 'drop' || end.kind === 'reject') {
      const where = placeOf(result.steps.at(-1)!);
      if (choices.some(({ kind }) => kind === 'unknown'))
        report.cannotTell('way back', `answers may be dropped by ${where}`);
      else
        report.failEndpoint('way back', goal.address, {
          code: 'foreign-drop',
          text: `answers are dropped by ${where}`,
        });
    }
  }
}

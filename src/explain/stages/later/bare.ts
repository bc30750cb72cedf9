import type { NodeView } from '../../node/index.ts';
import type { Flow, Origin } from '../../walk/index.ts';
import type { Asked, Goal } from '../asked.ts';
import { placeOf } from '../place.ts';
import type { Report } from '../report.ts';
import { answerOf, nextOf } from './later-walks.ts';

/** A connection that has begun. */
interface Begun {
  readonly flow: Flow;
  /** Connection tracking takes what comes next for invalid. */
  readonly isInvalid: boolean;
  /** Where answers come from; undefined: that is not known here. */
  readonly origin: Origin | undefined;
}

/**
 * Packets of TCP without data, which only acknowledge. One that is lost is made up for by the next, but that it was
 * refused its sender hears: ICMP leaves an error (tcp_v4_err, net/ipv4/tcp_ipv4.c) that programs get which ask for
 * SO_ERROR. A client sends one to agree to the connection, an endpoint where it answers late.
 */
export function lookAtBare(
  asked: Asked,
  goal: Goal,
  { flow, isInvalid, origin }: Begun,
  node: NodeView,
  report: Report,
): void {
  const bare = { which: 'bare', isInvalid } as const;
  const answers = () => (origin === undefined ? [] : answerOf(asked, goal, bare, flow, origin, node));
  const all = [
    { stage: 'others', who: 'packets after the first', branches: nextOf(asked, flow, bare, node) },
    { stage: 'way back', who: 'answers', branches: answers() },
  ] as const;
  for (const { stage, who, branches } of all) {
    const refused = branches.find(({ result }) => result.end.kind === 'reject')?.result;
    if (refused?.end.kind !== 'reject') continue;
    const text = `${who} without data are refused (${refused.end.how}) by ${placeOf(refused.steps.at(-1)!)}`;
    report.cannotTell(stage, `${text}: whether that ends the connection is not known`);
  }
}

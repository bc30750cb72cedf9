import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { type Answer, explain, type Knowledge, NodeView, type Question } from '../../explain/index.ts';

export interface SettledOptions {
  readonly question: Question;
  readonly probe: boolean;
  /** Asks the agent. */
  readonly ask: () => Promise<Knowledge>;
}

/** So long a change is waited for: the agent writes once a second, unless it is told otherwise (--iptables-min-sync-period). */
const PATIENCE_MS = 3000;
const PAUSE_MS = 50;

/** What the agent said, and when it was asked. */
interface Told {
  readonly knowledge: Knowledge;
  readonly askedAt: number;
}

/**
 * Answers a question of which the agent and the kernel are asked one after the other: where an answer is not that all works, and what it
 * is about changed meanwhile, or is on its way into the kernel, both are asked once more. UNKNOWN where that does not end.
 *
 * @throws what asking the agent or reading the kernel throws
 */
export async function answerSettled({ question, probe, ask }: SettledOptions): Promise<Answer> {
  const askedNow = async (): Promise<Told> => ({ askedAt: performance.now(), knowledge: await ask() });
  const deadline = performance.now() + PATIENCE_MS;
  for (let before = await askedNow(); ; ) {
    const answer = answerBy(before, question, { probe });
    if (answer.verdict === 'works') return answer;
    const after = await askedNow();
    if (!isUnwritten(before) && isSame(before, after)) return answer;
    if (after.askedAt > deadline) return answerBy(after, question, { probe, isChanging: true });
    if (isUnwritten(after)) await pause(PAUSE_MS);
    before = isUnwritten(after) ? await askedNow() : after;
  }
}

function answerBy({ knowledge }: Told, question: Question, options: Parameters<typeof explain>[3]): Answer {
  const node = NodeView.open();
  try {
    return explain(question, knowledge, node, options);
  } finally {
    node.close();
  }
}

function isUnwritten({ knowledge: { destination } }: Told): boolean {
  return destination.kind === 'service' && destination.service.unwritten;
}

/** Whether nothing changed between two answers of the agent, not even there and back. */
function isSame(before: Told, after: Told): boolean {
  const { destination } = after.knowledge;
  const age = destination.kind === 'service' ? destination.service.changedSecondsAgo : null;
  const isOlder = age === null || age * 1000 > performance.now() - before.askedAt;
  return isOlder && isDeepStrictEqual(lasting(before), lasting(after));
}

/** What the agent said of the destination, without what time alone changes. */
function lasting({ knowledge: { destination } }: Told): object {
  if (destination.kind !== 'service') return destination;
  return { ...destination, service: { ...destination.service, changedSecondsAgo: null } };
}

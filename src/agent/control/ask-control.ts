import { setTimeout as sleep } from 'node:timers/promises';
import { askAgentFor, type SocketPage } from '../http/ask-agent.ts';
import { ALIVE_PAGE } from './control-server.ts';

/** What to do when the agent cannot be asked at its control socket. */
export const WHERE_IT_ANSWERS =
  'Does it run, and with this --agent-lock-dir? Look at `nodeplane status` and the end of its log. It answers root on the node, in its network namespace (kubectl exec into its pod)';
/** After what a busy agent has at hand just now. */
export const ALIVE_WITHIN_MS = 20_000;
/** So long a wait is worth a word. */
const ASK_AGAIN_MS = 10_000;

/**
 * Asks the agent of this node at its control socket.
 *
 * @param page whose `timeoutMs` is for all of the answer: an agent that hangs is told as one that does not answer
 * @throws NoAnswerError when nobody answers in time; Error in words
 */
export function askControl(page: SocketPage): Promise<string> {
  return askAgentFor(page, 'it cannot do this: it is older than this program');
}

/** How to wait for what takes the agent long. */
export interface Patience {
  /** Told how many seconds it takes already, as long as the agent is alive. */
  readonly waiting: (seconds: number) => void;
  /** How soon the agent has to say that it is alive. @default 20 s */
  readonly aliveWithinMs?: number;
  /** How often it is asked that. @default 10 s after it answered */
  readonly againMs?: number;
}

/**
 * The same for an answer that may take minutes: before it and meanwhile the agent is asked whether it is alive, so that one that
 * hangs is told soon.
 *
 * @throws as `askControl`
 */
export async function askControlPatiently(
  page: SocketPage,
  { waiting, aliveWithinMs = ALIVE_WITHIN_MS, againMs = ASK_AGAIN_MS }: Patience,
): Promise<string> {
  const { socketPath } = page;
  const over = new AbortController();
  const { signal } = over;
  const isAlive = () => askControl({ socketPath, method: 'GET', path: ALIVE_PAGE, timeoutMs: aliveWithinMs, signal });
  const watch = async (): Promise<never> => {
    const began = performance.now();
    for (;;) {
      await sleep(againMs, undefined, { signal });
      await isAlive();
      waiting(Math.round((performance.now() - began) / 1000));
    }
  };
  try {
    await isAlive();
    return await Promise.race([askControl({ ...page, signal }), watch()]);
  } finally {
    over.abort();
  }
}

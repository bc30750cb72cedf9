import { askAgentFor } from '../http/ask-agent.ts';

/** A comparison of everything at 10,000 Services, by programs that read slowly, and the repair of all of it. */
const TIMEOUT_MS = 300_000;

/**
 * Asks the agent of this node at its control socket.
 *
 * @param path of the socket
 * @throws Error in words when nobody answers
 */
export function askControl(path: string, method: 'GET' | 'POST', page: string): Promise<string> {
  return askAgentFor(
    { socketPath: path, method, path: page, timeoutMs: TIMEOUT_MS },
    'it cannot do this: it is older than this program',
  );
}

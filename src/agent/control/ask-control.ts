import { askAgentFor } from '../http/ask-agent.ts';

/**
 * Asks the agent of this node at its control socket.
 *
 * @param path of the socket
 * @param timeoutMs for all of the answer: an agent that hangs is told as one that does not answer
 * @throws Error in words when nobody answers in time
 */
export function askControl(path: string, method: 'GET' | 'POST', page: string, timeoutMs: number): Promise<string> {
  return askAgentFor(
    { socketPath: path, method, path: page, timeoutMs },
    'it cannot do this: it is older than this program',
  );
}

import { type IncomingMessage, request } from 'node:http';

/** Whoever listens at the port may be anybody. */
const TIMEOUT_MS = 5000;
/** Ten thousand Nodes with their longest names and a few pod CIDRs each have a third of it. */
const LARGEST_ANSWER = 16 << 20;

/** A page at a unix socket. */
export interface SocketPage {
  readonly socketPath: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** For all of it. */
  readonly timeoutMs: number;
  /** Gives up when it aborts. @default waits to the end */
  readonly signal?: AbortSignal;
}

/** Somebody may be there, and says nothing. */
export class NoAnswerError extends Error {}

/**
 * Fetches a page of the agent of this machine.
 *
 * @param page `http://127.0.0.1:10249/routes`, or where else it is
 * @param notThere what it means when the agent has no such page
 * @throws NoAnswerError when nobody answers in time; Error in words when it is not with status 200, or more than 16 MiB
 */
export function askAgentFor(page: string | SocketPage, notThere: string): Promise<string> {
  return new Promise((resolve, reject) => {
    // One time for all of it: a server that sends a byte now and then would reset a time without traffic.
    const timeoutMs = typeof page === 'string' ? TIMEOUT_MS : page.timeoutMs;
    const limit = AbortSignal.timeout(timeoutMs);
    const signal = typeof page === 'string' || !page.signal ? limit : AbortSignal.any([limit, page.signal]);
    const take = (response: IncomingMessage) => {
      const { statusCode = 0 } = response;
      const chunks: Buffer[] = [];
      let length = 0;
      response.on('error', failed);
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        length += chunk.length;
        if (length > LARGEST_ANSWER) asked.destroy(new Error(`the answer has more than ${LARGEST_ANSWER} bytes`));
      });
      response.on('end', () => {
        if (statusCode === 200) resolve(Buffer.concat(chunks).toString());
        else if (statusCode === 403) reject(new Error('it answers clients at 127.0.0.1 and ::1 only'));
        else reject(new Error(statusCode === 404 ? notThere : `it answers with status ${statusCode}`));
      });
    };
    // Without a name for TLS Node.js would look whether the host is an address, and compile a long pattern for that (6 ms).
    const options = { signal, agent: false, servername: '' } as const;
    const asked = typeof page === 'string' ? request(page, options, take) : request({ ...page, ...options }, take);
    const failed = (error: Error) =>
      reject(limit.aborted ? new NoAnswerError(`no answer within ${timeoutMs / 1000} s`) : error);
    asked.on('error', failed);
    asked.end();
  });
}

import type { IncomingHttpHeaders } from 'node:http';
import { isMapping } from '../../../core/index.ts';
import { isProtobuf, readObject, STATUS } from '../../objects/protobuf/envelope.ts';
import { ApiStatusError } from './api-client.ts';

/** Of a refusal's body only so much is read; the rest is of no interest. */
const LONGEST_REFUSAL = 64 * 1024;
/** Whatever answers may ask for a day; an API server that is overloaded asks for seconds. */
const LONGEST_RETRY_AFTER_S = 60;
const NO_MESSAGE = 'an error without a message';
/** A longer text (a proxy's HTML page) is cut in messages. */
const LONGEST_TEXT = 300;

/**
 * Makes an error of an answer that is not 2xx. Throws ERR_API if the connection breaks.
 *
 * @param remedy stands behind the server's own words
 */
export async function readStatusError(
  attempt: string,
  status: number,
  headers: IncomingHttpHeaders,
  body: AsyncIterable<Uint8Array>,
  remedy = '',
): Promise<ApiStatusError> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > LONGEST_REFUSAL) break;
  }
  const { message, reason } = readRefusal(Buffer.concat(chunks), headers['content-type']);
  return new ApiStatusError(attempt, status, `${message}${remedy}`, {
    retryAfterMs: retryAfterMs(headers['retry-after']),
    reason,
  });
}

/** Makes an error of the `Status` object of an ERROR event. */
export function statusErrorOf(attempt: string, object: unknown): ApiStatusError {
  const { code, message, reason, details } = isMapping(object) ? object : {};
  const seconds = isMapping(details) ? details.retryAfterSeconds : undefined;
  const status = typeof code === 'number' ? code : 500;
  const text = typeof message === 'string' ? message : String(reason ?? NO_MESSAGE);
  return new ApiStatusError(attempt, status, text, {
    retryAfterMs: typeof seconds === 'number' ? waitMs(seconds) : undefined,
    reason: typeof reason === 'string' ? reason : undefined,
  });
}

function readRefusal(
  body: Buffer,
  contentType: string | undefined,
): { readonly message: string; readonly reason: string | undefined } {
  const isText = !isProtobuf(contentType);
  try {
    const status: unknown = isText ? JSON.parse(body.toString('utf8')) : readObject(STATUS, body);
    if (isMapping(status) && typeof status.message === 'string') {
      return { message: status.message, reason: typeof status.reason === 'string' ? status.reason : undefined };
    }
    if (isMapping(status) && typeof status.reason === 'string')
      return { message: status.reason, reason: status.reason };
  } catch {
    // Not from the API server itself, but from something in between; or longer than what is read of it.
  }
  if (!isText) return { message: NO_MESSAGE, reason: undefined };
  const line = body.toString('utf8').trim().replace(/\s+/g, ' ');
  return { message: line.length > LONGEST_TEXT ? `${line.slice(0, LONGEST_TEXT)}…` : line, reason: undefined };
}

/** The number of seconds; API servers do not send the form with a date. */
function retryAfterMs(header: string | undefined): number | undefined {
  const seconds = Number(header);
  return header !== undefined && Number.isFinite(seconds) && seconds >= 0 ? waitMs(seconds) : undefined;
}

function waitMs(seconds: number): number {
  return Math.min(seconds, LONGEST_RETRY_AFTER_S) * 1000;
}

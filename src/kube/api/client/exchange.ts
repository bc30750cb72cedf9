import http, { type IncomingMessage } from 'node:http';
import https, { type RequestOptions } from 'node:https';

/** A peer that vanished is noticed after this and ten probes, one each second (libuv's choice). */
const KEEP_ALIVE_MS = 30_000;

/** A request that is under way. */
export interface Exchange {
  /** The answer, once its headers are there. Rejects with the system's error. */
  readonly answer: Promise<IncomingMessage>;
  /** Gives up waiting for the answer. */
  destroy(error: Error): void;
}

/** Sends one HTTP request; `body` goes as JSON, called `bodyType`. */
export function exchange(server: URL, options: RequestOptions, body: unknown, bodyType = 'application/json'): Exchange {
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const headers = payload
    ? { ...options.headers, 'Content-Type': bodyType, 'Content-Length': payload.length }
    : options.headers;
  const transport = server.protocol === 'https:' ? https : http;
  const target = { host: hostOf(server), port: server.port, ...options, headers };
  const request = transport.request(target);
  const answer = new Promise<IncomingMessage>((resolve, reject) => {
    request.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    // An error of an answer that nobody reads ends nothing: node's IncomingMessage keeps it to itself.
    request.on('response', resolve);
    // Stays in place after the answer: an error on a finished request must not end the process.
    request.on('error', reject);
  });
  request.end(payload);
  return { answer, destroy: (error) => request.destroy(error) };
}

/** Without the brackets of an IPv6 address. */
function hostOf(server: URL): string {
  return server.hostname.replace(/^\[|\]$/g, '');
}

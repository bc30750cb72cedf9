import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, systemClock, tellFailure } from '../../core/index.ts';
import { HttpConnections } from './http-connections.ts';
import { keepListening } from './keep-listening.ts';

/** What a page answers. `Content-Length` is added. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What a page may want to know of the request. */
export interface HttpRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: URLSearchParams;
  /** Names in lower case. */
  readonly headers: IncomingHttpHeaders;
  /** Of the client; missing once the connection is gone. */
  readonly remoteAddress?: string | undefined;
}

/** Where to listen: an address as text (`ipv6Only`: whether `::` leaves IPv4 alone), or the path of a unix socket. */
export type HttpPlace =
  | { readonly host: string; readonly port: number; readonly ipv6Only: boolean }
  | { readonly path: string };

export type HttpListenerOptions = HttpPlace & {
  /** Whether to answer who has connected. @default everybody */
  readonly admit?: (socket: Socket) => boolean;
  /** What it throws or rejects with is told, and the connection cut. */
  readonly answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;
  /** Told when nobody can be accepted for now, with the system's error. */
  readonly failed: (error: NodeJS.ErrnoException) => void;
  /** @default the system's clock */
  readonly clock?: Clock;
  /** @default those of the process */
  readonly connections?: HttpConnections;
};

/** Of all servers together: descriptors are the process's. */
export const httpConnections = new HttpConnections();

/** A socket that answers HTTP. */
export interface HttpListener {
  /** Stops at once: open connections are reset, the port is free when the promise resolves. */
  close(): Promise<void>;
}

/** Listens; rejects with the system's error (EADDRINUSE, EADDRNOTAVAIL, ...) when that cannot be. */
export async function listenHttp(options: HttpListenerOptions): Promise<HttpListener> {
  const { answer, admit, failed, clock = systemClock, connections = httpConnections } = options;
  const { headersMs, requestMs, answerMs, keepAliveMs, checkMs, headerBytes } = connections.bounds;
  const server = createServer(
    {
      headersTimeout: headersMs,
      requestTimeout: requestMs,
      keepAliveTimeout: keepAliveMs,
      connectionsCheckingInterval: checkMs,
      maxHeaderSize: headerBytes,
    },
    async (incoming, response) => {
      if (!connections.admitRequest(incoming, response)) return;
      try {
        await respond(incoming, response, answer);
        const timer = clock.setTimer(() => response.destroy(), answerMs);
        response.once('close', () => timer.cancel());
      } catch (error) {
        tellFailure('HTTP request', error);
        response.destroy();
      }
    },
  );
  connections.watch(server);
  if (admit) {
    server.on('connection', (socket) => {
      if (!isAdmitted(socket, admit)) socket.destroy();
    });
  }
  const place = placeOf(options);
  const listen = () => void server.listen(place);
  const stop = await keepListening({ server, listen, clock, path: 'path' in place ? place.path : undefined, failed });
  return {
    close: () =>
      new Promise((resolve) => {
        if (server.listening) server.once('close', () => resolve());
        else resolve();
        stop();
        // Without this a client that keeps its connection open would keep us from ending.
        server.closeAllConnections();
      }),
  };
}

function placeOf(options: HttpPlace): HttpPlace {
  if ('path' in options) return { path: options.path };
  const { host, port, ipv6Only } = options;
  return { host, port, ipv6Only };
}

/** Whoever has left already is nobody. */
function isAdmitted(socket: Socket, admit: (socket: Socket) => boolean): boolean {
  try {
    return admit(socket);
  } catch (error) {
    tellFailure('HTTP connection', error);
    return false;
  }
}

async function respond(
  { method = 'GET', url = '/', headers, socket }: IncomingMessage,
  response: ServerResponse,
  answer: HttpListenerOptions['answer'],
): Promise<void> {
  const end = url.indexOf('?');
  const path = end < 0 ? url : url.slice(0, end);
  const query = new URLSearchParams(end < 0 ? '' : url.slice(end + 1));
  const request = { method, path, query, headers, remoteAddress: socket.remoteAddress };
  const { status, headers: sent, body } = await answer(request);
  response.writeHead(status, { ...sent, 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}

/** An answer in plain text, with the headers Go's servers send. */
export function textAnswer(status: number, body: string): HttpAnswer {
  return {
    status,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
    body,
  };
}

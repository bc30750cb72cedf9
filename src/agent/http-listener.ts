import { createServer, type IncomingHttpHeaders } from 'node:http';
import { tellFailure } from '../core/index.ts';

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

export interface HttpListenerOptions {
  /** Address to listen on, as text. */
  readonly host: string;
  readonly port: number;
  /** Whether `::` leaves IPv4 alone. */
  readonly ipv6Only: boolean;
  /** What it throws or rejects with is told, and the connection cut. */
  readonly answer: (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;
}

/** A socket that answers HTTP. */
export interface HttpListener {
  /** Stops at once: open connections are reset, the port is free when the promise resolves. */
  close(): Promise<void>;
}

/** Listens; rejects with the system's error (EADDRINUSE, EADDRNOTAVAIL, ...) when that cannot be. */
export function listenHttp({ host, port, ipv6Only, answer }: HttpListenerOptions): Promise<HttpListener> {
  const server = createServer(async (incoming, response) => {
    const { method = 'GET', url = '/', headers, socket } = incoming;
    const end = url.indexOf('?');
    const path = end < 0 ? url : url.slice(0, end);
    const query = new URLSearchParams(end < 0 ? '' : url.slice(end + 1));
    try {
      const { status, headers: sent, body } = await answer({ method, path, query, headers, remoteAddress: socket.remoteAddress });
      response.writeHead(status, { ...sent, 'Content-Length': Buffer.byteLength(body) });
      response.end(body);
    } catch (error) {
      tellFailure('HTTP request', error);
      response.destroy();
    }
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      // Without this a client that keeps its connection open would keep us from ending.
      server.closeAllConnections();
    });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, ipv6Only }, () => {
      server.off('error', reject);
      resolve({ close });
    });
  });
}

/** An answer in plain text, with the headers Go's servers send. */
export function textAnswer(status: number, body: string): HttpAnswer {
  return {
    status,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
    body,
  };
}

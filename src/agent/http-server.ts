import { createServer, type Server } from 'node:http';
import { type Clock, formatIp, type Timer } from '../core/index.ts';
import { type BindAddress, formatBindAddress } from './bind-address.ts';
import type { Logger } from './logger.ts';

/** What a page answers. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Exact path to page. Any other path answers 404. */
export type Pages = Readonly<Record<string, () => HttpAnswer | Promise<HttpAnswer>>>;

export interface HttpServerOptions {
  /** What the server is called in the log: `health server`. */
  readonly name: string;
  readonly address: BindAddress;
  readonly pages: Pages;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** As kube-proxy: a port that is taken now may be free soon. */
const RETRY_MS = 5000;

/** One small read-only HTTP server, which keeps trying to listen until it can. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  #server: Server | undefined;
  #retry: Timer | undefined;

  constructor(options: HttpServerOptions) {
    this.#options = options;
  }

  /** Starts listening; resolves when it listens or when the first attempt failed (the next ones go on by themselves). */
  async start(): Promise<void> {
    const { name, address, clock, logger } = this.#options;
    const where = formatBindAddress(address);
    try {
      this.#server = await this.#listen();
      logger.info({ address: where }, `${name} listens`);
    } catch (error) {
      logger.error(
        { address: where, err: error },
        `${name} cannot listen on ${where}; trying again in ${RETRY_MS / 1000} s`,
      );
      this.#retry = clock.setTimer(() => void this.start(), RETRY_MS);
    }
  }

  async stop(): Promise<void> {
    this.#retry?.cancel();
    const server = this.#server;
    if (!server) return;
    await new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }

  async #listen(): Promise<Server> {
    const { ip, port } = this.#options.address;
    const host = formatIp(ip);
    if (host !== '0.0.0.0') return this.#listenOn(host, port);
    // Go's "0.0.0.0" means both families, and probes rely on it; without IPv6 in the kernel it is IPv4 alone.
    try {
      return await this.#listenOn('::', port);
    } catch (error) {
      if (!['EAFNOSUPPORT', 'EADDRNOTAVAIL'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return this.#listenOn(host, port);
    }
  }

  #listenOn(host: string, port: number): Promise<Server> {
    const server = createServer((request, response) => {
      void this.#answer(request.url ?? '/').then(({ status, headers, body }) => {
        response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) });
        response.end(body);
      });
    });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port, ipv6Only: false }, () => {
        server.off('error', reject);
        resolve(server);
      });
    });
  }

  async #answer(url: string): Promise<HttpAnswer> {
    const path = url.split('?', 1)[0]!;
    const page = Object.hasOwn(this.#options.pages, path) ? this.#options.pages[path] : undefined;
    if (!page) return textAnswer(404, '404 page not found\n');
    try {
      return await page();
    } catch (error) {
      this.#options.logger.error({ err: error, path }, 'A page could not be made');
      return textAnswer(500, 'internal error, see the log\n');
    }
  }
}

/** An answer in plain text, with the headers Go's servers send. */
export function textAnswer(status: number, body: string): HttpAnswer {
  return {
    status,
    headers: { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' },
    body,
  };
}

import { type BindAddress, formatBindAddress } from '../../config/index.ts';
import { type Clock, formatIp, NodeplaneError, type Timer } from '../../core/index.ts';
import { LastingTrouble, type Logger } from '../logger.ts';
import { type HttpAnswer, type HttpListener, type HttpRequest, listenHttp, textAnswer } from './http-listener.ts';

/** Exact path to page, whatever the method. Any other path answers 404. */
export type Pages = Readonly<Record<string, (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>>>;

export interface HttpServerOptions {
  /** What the server is called in the log: `health server`. */
  readonly name: string;
  readonly address: BindAddress;
  readonly pages: Pages;
  /** Whether not being able to listen is fatal (--bind-address-hard-fail). @default false: it is tried again */
  readonly hardFail?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** As kube-proxy: a port that is taken now may be free soon. */
const RETRY_MS = 5000;

/** One small read-only HTTP server, which keeps trying to listen until it can. */
export class HttpServer {
  readonly #options: HttpServerOptions;
  #listener: HttpListener | undefined;
  #retry: Timer | undefined;
  #attempting: Promise<unknown> = Promise.resolve();
  #isStopped = false;
  readonly #trouble: LastingTrouble;

  constructor(options: HttpServerOptions) {
    this.#options = options;
    this.#trouble = new LastingTrouble(options.logger);
  }

  /** Listens if that can be now, and otherwise tries nothing more. Whether it listens. */
  async listenIfFree(): Promise<boolean> {
    return (await this.#tryToListen()) === undefined;
  }

  /**
   * Starts listening; resolves when it listens or when the first attempt failed (the next ones go on by themselves).
   *
   * @throws ERR_CONFIG when it cannot and that is fatal
   */
  async start(): Promise<void> {
    const { name, address, clock } = this.#options;
    const where = formatBindAddress(address);
    const error = await this.#tryToListen();
    if (error && !this.#isStopped) {
      if (this.#options.hardFail) {
        throw new NodeplaneError('ERR_CONFIG', `The ${name} cannot listen on ${where}`, { cause: error });
      }
      const message = `The ${name} cannot listen on ${where}; trying again every ${RETRY_MS / 1000} s`;
      this.#trouble.tell(error, message, { address: where, ...remedyOf(error, address) });
      this.#retry = clock.setTimer(() => this.start(), RETRY_MS);
    }
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#retry?.cancel();
    await this.#attempting;
    await this.#listener?.close();
  }

  /** The error of listening; undefined when it listens. */
  #tryToListen(): Promise<Error | undefined> {
    const attempt = this.#attempt();
    this.#attempting = attempt;
    return attempt;
  }

  async #attempt(): Promise<Error | undefined> {
    const { name, address, logger } = this.#options;
    if (this.#listener) return undefined;
    try {
      this.#listener = await this.#listen();
      this.#trouble.over();
      logger.info({ address: formatBindAddress(address) }, `The ${name} listens`);
      return undefined;
    } catch (error) {
      return error as Error;
    }
  }

  async #listen(): Promise<HttpListener> {
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

  #listenOn(host: string, port: number): Promise<HttpListener> {
    const { name, clock, logger } = this.#options;
    return listenHttp({
      host,
      port,
      ipv6Only: false,
      answer: (request) => this.#answer(request),
      failed: (error) => logger.error({ err: error }, `The ${name} cannot accept anybody for now`),
      clock,
    });
  }

  async #answer(request: HttpRequest): Promise<HttpAnswer> {
    const { path } = request;
    const page = Object.hasOwn(this.#options.pages, path) ? this.#options.pages[path] : undefined;
    if (!page) return textAnswer(404, '404 page not found\n');
    try {
      return await page(request);
    } catch (error) {
      this.#options.logger.error({ err: error, path }, 'A page could not be made');
      return textAnswer(500, 'internal error, see the log\n');
    }
  }
}

function remedyOf(error: NodeJS.ErrnoException, { port }: BindAddress): { readonly remedy?: string } {
  if (error.code !== 'EADDRINUSE') return {};
  return { remedy: `ss -ltnp 'sport = :${port}' names who listens there: end it, or choose another port` };
}

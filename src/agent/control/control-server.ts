import { rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import type { Clock } from '../../core/index.ts';
import { descriptorOf, peerCredentials } from '../../sys/index.ts';
import { HttpConnections } from '../http/http-connections.ts';
import { type HttpAnswer, type HttpListener, type HttpRequest, listenHttp, textAnswer } from '../http/http-listener.ts';
import type { Logger } from '../logger.ts';

/** Answered at once by an agent that does not hang, whatever else it is asked for. */
export const ALIVE_PAGE = '/alive';

/** By method and path: `POST /repair`. */
export type ControlPages = Readonly<Record<string, (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>>>;

export interface ControlServerOptions {
  /** Path of the unix socket, in the directory of the agent's lock. What lies there is of an agent that has ended. */
  readonly path: string;
  readonly pages: ControlPages;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * The socket by which root asks this agent for something, and has it do something: nothing on the network reaches it, and no
 * process of a pod that is not given the node's directory. The kernel says who connects; only root gets an answer.
 */
export class ControlServer {
  readonly #options: ControlServerOptions;
  #listener: HttpListener | undefined;

  constructor(options: ControlServerOptions) {
    this.#options = options;
  }

  /** Listens. That it cannot is told and harms nothing else: only `nodeplane diff` and `nodeplane explain` find nobody. */
  async start(): Promise<void> {
    const { path, clock, logger } = this.#options;
    try {
      rmSync(path, { force: true });
      this.#listener = await listenHttp({
        path,
        answer: (request) => this.#answer(request),
        admit: (socket) => this.#admit(socket),
        failed: (error) => logger.error({ err: error }, 'The control socket cannot accept anybody for now'),
        clock,
        // Those of the network must not take root's place.
        connections: new HttpConnections(),
      });
      logger.debug({ path }, 'The control socket listens');
    } catch (error) {
      logger.warn(
        { path, err: error },
        'There is no control socket: "nodeplane diff" and "nodeplane explain" find no agent',
      );
    }
  }

  async stop(): Promise<void> {
    await this.#listener?.close();
    rmSync(this.#options.path, { force: true });
  }

  #admit(socket: Socket): boolean {
    const { uid, pid } = peerCredentials(descriptorOf(socket));
    if (uid === 0) return true;
    this.#options.logger.warn({ uid, pid }, 'Control request refused: only root may ask');
    return false;
  }

  async #answer(request: HttpRequest): Promise<HttpAnswer> {
    const { pages, logger } = this.#options;
    const name = `${request.method} ${request.path}`;
    if (name === `GET ${ALIVE_PAGE}`) return textAnswer(200, 'alive\n');
    const page = Object.hasOwn(pages, name) ? pages[name] : undefined;
    if (!page) return textAnswer(404, `There is no "${name}"\n`);
    try {
      return await page(request);
    } catch (error) {
      logger.error({ err: error, request: name }, 'A control request failed');
      return textAnswer(500, 'internal error, see the log\n');
    }
  }
}

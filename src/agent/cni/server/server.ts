import { lstatSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { dirname } from 'node:path';
import { CNI_ERROR } from '../../../cni/index.ts';
import { type Clock, inBackground, NodeplaneError, sleep } from '../../../core/index.ts';
import { descriptorOf, hasPeerLeft, libc, makeOwnDirectory, peerCredentials } from '../../../sys/index.ts';
import { keepListening } from '../../http/keep-listening.ts';
import type { Logger } from '../../logger.ts';
import { type ReceivedRequest, readRequest } from './connection.ts';
import type { Client } from './plugin-service.ts';
import { encodeAnswer, type PluginAnswer, refusal } from './protocol.ts';

export interface CniServerOptions {
  /** Path of the unix socket. Its directory is made for root alone if it is missing, and otherwise left as it is. */
  readonly path: string;
  /** Answers a request; undefined when nobody wants the answer. Must not reject. */
  readonly serve: (request: ReceivedRequest, client: Client) => Promise<PluginAnswer | undefined>;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Connections beyond this many are told to try again later. @default 1024 */
  readonly connectionLimit?: number;
  /** How long a request may take to arrive, and an answer to be taken. @default 10000 */
  readonly transferMs?: number;
}

/** How often, and how long after each other, it is looked whether the one who listens is only ending. */
const ENDING_LOOKS = 20;
const ENDING_LOOK_MS = 25;

/** What the directory of the socket is for, in messages. */
export const SOCKET_PURPOSE = 'the socket of the CNI plugin (--cni-socket)';

/** The socket the plugin on the host talks to. Only root gets an answer. */
export class CniServer {
  readonly #options: CniServerOptions;
  readonly #connections = new Set<Socket>();
  #stopListening: () => void = () => {};

  constructor(options: CniServerOptions) {
    this.#options = options;
  }

  /**
   * Listens. A socket that a killed agent left is replaced; one where somebody answers is not.
   *
   * @throws ERR_CNI_SOCKET, also when others could put another socket in its place
   */
  async listen(): Promise<void> {
    const { path } = this.#options;
    try {
      makeOwnDirectory(dirname(path), SOCKET_PURPOSE);
      if (await isAnsweredFor(path, this.#options.clock)) throw new Error('another process listens there');
      if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) rmSync(path);
      // Nothing may be read by node itself: it would lose the descriptor that comes with the first bytes.
      const { clock, logger } = this.#options;
      const server = createServer({ pauseOnConnect: true }, (socket) => {
        const cut = (error: unknown) => {
          socket.destroy();
          throw error;
        };
        inBackground('CNI connection', () => this.#converse(socket).catch(cut));
      });
      this.#stopListening = await keepListening({
        server,
        listen: () => void server.listen({ path, backlog: 1024 }),
        clock,
        path,
        failed: (error) => logger.error({ err: error }, 'The CNI server cannot accept anybody for now'),
      });
    } catch (cause) {
      throw new NodeplaneError('ERR_CNI_SOCKET', `The CNI server cannot listen on "${path}"`, {
        facts: { path },
        cause,
      });
    }
  }

  /** Accepts nobody any more. */
  close(): void {
    this.#stopListening();
  }

  /** Resolves when all answers were taken; connections that take longer than `graceMs` are cut. */
  async drain(graceMs: number): Promise<void> {
    const { clock } = this.#options;
    const deadline = clock.now() + graceMs;
    while (this.#connections.size > 0 && clock.now() < deadline) {
      await sleep(clock, 5);
    }
    for (const socket of this.#connections) socket.destroy();
  }

  async #converse(socket: Socket): Promise<void> {
    const { logger, clock, connectionLimit = 1024, transferMs = 10_000, serve } = this.#options;
    this.#connections.add(socket);
    const left = new Promise<void>((resolve) => {
      socket.on('close', () => {
        this.#connections.delete(socket);
        resolve();
      });
    });
    // A plugin that was killed; `close` follows.
    socket.on('error', () => {});
    try {
      const peer = peerCredentials(descriptorOf(socket));
      if (peer.uid !== 0) {
        logger.warn({ ...peer }, 'CNI request refused: only root may ask');
        socket.destroy();
        return;
      }
      const request = await readRequest(socket, clock, transferMs);
      try {
        const answer =
          this.#connections.size > connectionLimit
            ? refusal(CNI_ERROR.TRY_AGAIN_LATER, 'The nodeplane agent is busy with too many requests')
            : await serve(request, { left, hasLeft: () => socket.destroyed || hasPeerLeft(descriptorOf(socket)) });
        if (answer) this.#send(socket, answer, transferMs);
      } finally {
        if (request.netns !== undefined) libc().close(request.netns);
      }
    } catch (error) {
      // Whoever only tries whether somebody listens gets no line in the log.
      if (socket.destroyed || hasPeerLeft(descriptorOf(socket))) {
        socket.destroy();
        return;
      }
      logger.warn({ err: error }, 'CNI request refused: it cannot be read');
      const message = error instanceof NodeplaneError ? error.message : 'Cannot read the request';
      this.#send(socket, refusal(CNI_ERROR.DECODING_FAILURE, message), transferMs);
    }
  }

  #send(socket: Socket, answer: PluginAnswer, transferMs: number): void {
    socket.setTimeout(transferMs, () => socket.destroy());
    // What else comes is of no interest, but while it is not read the connection does not close.
    socket.resume();
    socket.end(encodeAnswer(answer));
  }
}

/** Whether somebody answers, and does not stop to: what a process has open that was just killed is closed a little later. */
async function isAnsweredFor(path: string, clock: Clock): Promise<boolean> {
  for (let look = 0; look < ENDING_LOOKS; look++) {
    if (!(await isAnswered(path))) return false;
    await sleep(clock, ENDING_LOOK_MS);
  }
  return true;
}

/** Whether somebody accepts connections on a unix socket, or may do so. */
export function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code === 'EAGAIN' || code === 'EACCES'));
  });
}

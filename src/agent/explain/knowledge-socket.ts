import { createServer, type Server, type Socket } from 'node:net';
import { errorText, inBackground } from '../../core/index.ts';
import { descriptorOf, peerCredentials } from '../../sys/index.ts';
import type { Logger } from '../logger.ts';

/**
 * Where the agent of a node answers `nodeplane explain`. An abstract name: it is the network namespace's, as the agent's work is,
 * and nothing of it stays behind.
 */
export const KNOWLEDGE_SOCKET = '\0nodeplane/explain';

/** A question is a line of a few hundred bytes. */
const LONGEST_QUESTION = 4096;
/** How long a question may take to come, and its answer to be taken. */
const TRANSFER_MS = 5000;
/** Answered one after the other; who comes beyond these is turned away. */
const MOST_WAITING = 8;

export interface KnowledgeSocketOptions {
  /** Answers a question, a line of JSON, with one. What it throws is told to whoever asked. */
  readonly answer: (line: string) => Promise<string>;
  readonly logger: Logger;
}

/** Answers root's questions, one at a time. */
export class KnowledgeSocket {
  readonly #options: KnowledgeSocketOptions;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: KnowledgeSocketOptions) {
    this.#options = options;
  }

  /** Listens. That it cannot is a line in the log: Services do not need it. */
  listen(): void {
    const { logger } = this.#options;
    const server = createServer((socket) => this.#converse(socket));
    server.on('error', (err) => logger.warn({ err }, 'Questions (nodeplane explain) cannot be answered'));
    server.listen(KNOWLEDGE_SOCKET);
    this.#server = server;
  }

  close(): void {
    this.#server?.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #converse(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    // Who asked has left.
    socket.on('error', () => {});
    socket.setTimeout(TRANSFER_MS, () => socket.destroy());
    if (peerCredentials(descriptorOf(socket)).uid !== 0 || this.#sockets.size > MOST_WAITING) {
      socket.destroy();
      return;
    }
    let text = '';
    socket.setEncoding('utf8');
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (text.length > LONGEST_QUESTION) socket.destroy();
      else if (text.endsWith('\n')) inBackground('explain', () => this.#inTurn(socket, text));
    });
  }

  async #inTurn(socket: Socket, line: string): Promise<void> {
    const before = this.#last;
    const turn = before.then(async () => {
      if (socket.destroyed) return;
      let answer: string;
      try {
        answer = await this.#options.answer(line);
      } catch (error) {
        answer = JSON.stringify({ error: errorText(error) });
      }
      socket.end(`${answer}\n`);
    });
    this.#last = turn;
    await turn;
  }
}

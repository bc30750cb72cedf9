import type { Part } from '../part.ts';
import { ControlServer, type ControlServerOptions } from './control-server.ts';

/** Answers root on this node, once this agent works on it. */
export class ControlPart implements Part {
  readonly #server: ControlServer;

  constructor(options: ControlServerOptions) {
    this.#server = new ControlServer(options);
  }

  start(): Promise<void> {
    return this.#server.start();
  }

  stop(): Promise<void> {
    return this.#server.stop();
  }
}

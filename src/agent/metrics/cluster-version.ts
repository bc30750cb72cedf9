import { type Clock, inBackground, type Timer } from '../../core/index.ts';
import { type ApiClient, type ApiObservation, readServerVersion } from '../../kube/index.ts';
import type { Logger } from '../logger.ts';

/** How often the API server is asked: alerts on mixed versions wait for 15 minutes. */
const PERIOD_MS = 5 * 60_000;

/** Nodes that start together need not ask together for ever. */
const JITTER = 0.2;

export interface ClusterVersionOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Told the version when it is known, `v1.34.2`, and again when it is another one. */
  readonly changed: (version: string) => void;
  /** A number from 0 to 1 (exclusive). @default Math.random */
  readonly random?: () => number;
}

/**
 * Follows which release of Kubernetes the API server is: asked at the start, which does not wait for it, then every five
 * minutes, and as soon as the server is heard again after it was away, as it is when it is upgraded.
 */
export class ClusterVersion {
  readonly #options: ClusterVersionOptions;
  readonly #stopping = new AbortController();
  #version: string | undefined;
  #timer: Timer | undefined;
  #asking = false;
  #wasAway = false;

  constructor(options: ClusterVersionOptions) {
    this.#options = options;
  }

  start(): void {
    this.#ask();
  }

  stop(): void {
    this.#stopping.abort();
    this.#timer?.cancel();
  }

  /** Is told all that happens between us and the API server. */
  observe(observation: ApiObservation): void {
    if (observation.kind === 'failed') this.#wasAway = true;
    const heard = observation.kind === 'watchStarted' || observation.kind === 'listed';
    if (heard && this.#wasAway) {
      this.#wasAway = false;
      this.#ask();
    }
  }

  #ask(): void {
    if (this.#asking || this.#stopping.signal.aborted) return;
    this.#asking = true;
    this.#timer?.cancel();
    inBackground('version of the API server', async () => {
      await this.#read();
      this.#asking = false;
      const { clock, random = Math.random } = this.#options;
      const stopped = this.#stopping.signal.aborted;
      if (!stopped) this.#timer = clock.setTimer(() => this.#ask(), PERIOD_MS * (1 + random() * JITTER));
    });
  }

  async #read(): Promise<void> {
    const { client, logger, changed } = this.#options;
    try {
      const version = await readServerVersion(client, this.#stopping.signal);
      if (version === this.#version) return;
      if (this.#version) logger.info({ version, before: this.#version }, 'The API server is of another version now');
      else logger.debug({ version }, 'The API server is of this version');
      this.#version = version;
      changed(version);
    } catch (error) {
      // What it was before is still the best that is known. Whether the server can be reached is told by lists and watches.
      logger.debug({ err: error }, 'The version of the API server is not known');
    }
  }
}

import { Worker } from 'node:worker_threads';
import { Counter, type Registry } from 'prom-client';
import { type Clock, formatIp, NodeplaneError, type Timer } from '../../core/index.ts';
import type { Logger } from '../logger.ts';
import { type CollectReport, hasRemains } from './collect-node.ts';
import type { CollectTask } from './worker.ts';

export interface CollectorOptions {
  /** Directories of reservations. */
  readonly dataDirs: readonly string[];
  /** The built program of the server's threads. */
  readonly file: string;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly logger: Logger;
}

const BETWEEN_LOOKS_MS = 180_000;
/** A DEL deletes the link first and its records last: what is gone for so long is not just being detached. */
const GRACE_MS = 1000;

/**
 * Gives back what pods left that are gone without a DEL: the node was started anew, a runtime lost them, an ADD was killed.
 *
 * A look at the records costs little; only when something is found, a thread begins, because what follows waits for locks.
 */
export class Collector {
  readonly #options: CollectorOptions;
  readonly #addresses: Counter;
  #timer: Timer | undefined;
  #thread: Worker | undefined;
  #stopped = false;

  constructor(options: CollectorOptions) {
    this.#options = options;
    this.#addresses = new Counter({
      name: 'nodeplane_cni_collected_addresses_total',
      help: 'Pod addresses given back without a DEL, because the pod was gone.',
      registers: [options.registry],
    });
  }

  /** Looks now, and every few minutes from then on. */
  start(): void {
    if (this.#look()) this.#later(GRACE_MS, () => this.#collect());
    else this.#later(BETWEEN_LOOKS_MS, () => this.start());
  }

  /** Ends what goes on; the next agent finishes it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.#thread?.terminate();
  }

  #later(ms: number, fn: () => unknown): void {
    if (!this.#stopped) this.#timer = this.#options.clock.setTimer(fn, ms);
  }

  #look(): boolean {
    const { dataDirs, logger } = this.#options;
    try {
      return hasRemains(dataDirs);
    } catch (error) {
      logger.error({ err: error }, 'What is left of pods cannot be looked for');
      return false;
    }
  }

  async #collect(): Promise<void> {
    const { logger } = this.#options;
    try {
      const { collected, failures } = await this.#runThread();
      for (const { network, containerId: container, ifname, addresses } of collected) {
        this.#addresses.inc(addresses.length);
        const facts = { network, container, ifname, addresses: addresses.map(formatIp) };
        logger.info(facts, 'CNI: given back what was left of a pod that is gone');
      }
      for (const failure of failures) logger.warn({ failure }, 'CNI: something is left of a pod that is gone');
    } catch (error) {
      if (!this.#stopped) logger.error({ err: error }, 'What is left of pods cannot be collected');
    }
    this.#later(BETWEEN_LOOKS_MS, () => this.start());
  }

  #runThread(): Promise<CollectReport> {
    const { file, dataDirs } = this.#options;
    const workerData: CollectTask = { collect: dataDirs };
    const thread = new Worker(file, { workerData });
    this.#thread = thread;
    return new Promise<CollectReport>((resolve, reject) => {
      thread.once('message', resolve);
      thread.once('error', reject);
      thread.once('exit', () => reject(new NodeplaneError('ERR_CNI_REQUEST', 'The thread that collects ended')));
    }).finally(() => {
      this.#thread = undefined;
    });
  }
}

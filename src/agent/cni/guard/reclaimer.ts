import { Counter, type Registry } from 'prom-client';
import { type Clock, formatIp, type Timer } from '../../../core/index.ts';
import type { Logger } from '../../logger.ts';
import { DamagedNoteLog } from './damaged-notes.ts';
import { hasReclaimable, type ReclaimReport } from './reclaim-node.ts';

export interface ReclaimerOptions {
  /** Directories of reservations. */
  readonly dataDirs: readonly string[];
  /** Reclaims, in a thread: what it does waits for locks. */
  readonly reclaim: (dataDirs: readonly string[]) => Promise<ReclaimReport>;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly logger: Logger;
}

const BETWEEN_LOOKS_MS = 180_000;
/** A DEL deletes the link first and its records last: what is gone for so long is not just being detached. */
const GRACE_MS = 1000;

/**
 * Gives back what pods left that are gone without a DEL: the node was started anew, a runtime lost them, an ADD was killed.
 * Sees to it that the records of the others are whole.
 *
 * A look at the records costs little; only when something is found, a thread is occupied.
 */
export class Reclaimer {
  readonly #options: ReclaimerOptions;
  readonly #addresses: Counter;
  readonly #damaged: DamagedNoteLog;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(options: ReclaimerOptions) {
    this.#options = options;
    this.#damaged = new DamagedNoteLog(options.logger);
    this.#addresses = new Counter({
      name: 'nodeplane_cni_collected_addresses_total',
      help: 'Pod addresses given back without a DEL, because the pod was gone.',
      registers: [options.registry],
    });
  }

  /** Looks now, and every few minutes from then on. */
  start(): void {
    if (this.#look()) this.#later(GRACE_MS, () => this.#reclaim());
    else this.#later(BETWEEN_LOOKS_MS, () => this.start());
  }

  /** Begins nothing any more. What goes on ends with its thread; the next agent finishes it. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #later(ms: number, fn: () => unknown): void {
    if (!this.#stopped) this.#timer = this.#options.clock.setTimer(fn, ms);
  }

  #look(): boolean {
    const { dataDirs, logger } = this.#options;
    try {
      this.#damaged.look(dataDirs);
      return hasReclaimable(dataDirs);
    } catch (error) {
      logger.error({ err: error }, 'What is left of pods cannot be looked for');
      return false;
    }
  }

  async #reclaim(): Promise<void> {
    const { logger } = this.#options;
    try {
      const { collected, restored, failures } = await this.#options.reclaim(this.#options.dataDirs);
      for (const { network, containerId: container, ifname, addresses } of collected) {
        this.#addresses.inc(addresses.length);
        const facts = { network, container, ifname, addresses: addresses.map(formatIp) };
        logger.info(facts, 'CNI: given back what was left of a pod that is gone');
      }
      for (const { network, owner, address } of restored) {
        const facts = { network, container: owner.containerId, ifname: owner.ifname, address: formatIp(address) };
        logger.warn(facts, 'CNI: the file that reserves a pod’s address was removed or damaged, and is written again');
      }
      for (const failure of failures) logger.warn({ failure }, 'CNI: something is left of a pod that is gone');
    } catch (error) {
      if (!this.#stopped) logger.error({ err: error }, 'What is left of pods cannot be collected');
    }
    this.#later(BETWEEN_LOOKS_MS, () => this.start());
  }
}

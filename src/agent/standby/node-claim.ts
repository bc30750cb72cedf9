import { statSync } from 'node:fs';
import { type Clock, sleep } from '../../core/index.ts';
import { FileLock, makeOwnDirectory } from '../../sys/index.ts';
import type { Logger } from '../logger.ts';
import { agentFile } from './agent-file.ts';

export interface NodeClaimOptions {
  /** Where the lock lies; the same for all agents of the node. Empty: there is no lock. */
  readonly directory: string;
  /** Whether the agent is expected to go without a lock where the directory is not there: as a kube-proxy, it is. */
  readonly mayLack: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** One look at the lock takes some 20 µs: 0.02 % of a processor. */
const POLL_MS = 100;
/** What the directory is for, in messages. */
const PURPOSE = 'the lock of the agent (--agent-lock-dir)';

/**
 * The right to work on this node, which one agent has at a time: a lock that the kernel gives back when its holder ends,
 * however it ends. The file is named after the network namespace, because what it keeps apart is in there: rules, routes,
 * devices and ports.
 */
export class NodeClaim {
  readonly #options: NodeClaimOptions;
  /** Undefined: everybody may work. */
  readonly #lock: FileLock | undefined;

  /** @throws ERR_UNSAFE_PATH when others could hold the lock for ever */
  static open(options: NodeClaimOptions): NodeClaim {
    const { directory, mayLack, logger } = options;
    if (directory === '') return new NodeClaim(options, undefined);
    try {
      makeOwnDirectory(directory, PURPOSE);
      const lock = new FileLock(agentFile(directory, 'lock'));
      if (isPrivate(directory)) {
        const facts = { lock: lock.path };
        logger.info(facts, `A second agent on this node would not be noticed: ${remedy(directory)}`);
      }
      return new NodeClaim(options, lock);
    } catch (error) {
      if ((error as { code?: string }).code === 'ERR_UNSAFE_PATH') throw error;
      const text = `There is no lock, so a second agent on this node would not be noticed: ${remedy(directory)}`;
      logger[mayLack ? 'info' : 'warn']({ err: error }, text);
      return new NodeClaim(options, undefined);
    }
  }

  private constructor(options: NodeClaimOptions, lock: FileLock | undefined) {
    this.#options = options;
    this.#lock = lock;
  }

  /** Takes the node if nobody else has it; whether it is ours. */
  tryTake(): boolean {
    return this.#lock?.tryTake() ?? true;
  }

  /** Who has it, in words: `process 4711 (nodeplane)`. */
  holder(): string {
    return this.#lock?.holder() ?? 'nobody';
  }

  /** Where the lock is; empty: there is none. */
  get path(): string {
    return this.#lock?.path ?? '';
  }

  /** Where root may ask whoever works on the node; empty: nowhere, as there is no directory for it. */
  get socket(): string {
    return this.#lock ? agentFile(this.#options.directory, 'sock') : '';
  }

  /** Waits until the node is ours. False when `signal` aborts before. */
  async take(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if (this.tryTake()) return true;
      await sleep(this.#options.clock, POLL_MS, signal);
    }
    return false;
  }

  /** Leaves the node to others. Nothing may be written any more. */
  release(): void {
    this.#lock?.close();
  }
}

/** Whether a directory seems to lie in a container's own file system, where agents in other containers have another one. */
function isPrivate(directory: string): boolean {
  return statSync(directory).dev === statSync('/').dev;
}

function remedy(directory: string): string {
  return `mount the node's own "${directory}" there (hostPath) to have the second one wait`;
}

import { type Cidr, NodeplaneError } from '../../core/index.ts';
import { type OwnEnd, placeSubnetEnv, subnetEnv } from '../../routes/index.ts';
import type { Logger } from '../logger.ts';

/** Keeps the file that flannel's CNI plugins read. It stays when the agent ends, as flannel's does. */
export class SubnetFile {
  readonly #path: string;
  readonly #networks: readonly Cidr[];
  readonly #masquerade: boolean;
  readonly #logger: Logger;
  /** What could not be written yet. */
  #unwritten: string | undefined;
  #lastProblem: string | undefined;

  /**
   * @param networks the addresses of all pods
   * @param masquerade whether the agent masquerades, so that the plugins need not
   */
  constructor(path: string, networks: readonly Cidr[], masquerade: boolean, logger: Logger) {
    this.#path = path;
    this.#networks = networks;
    this.#masquerade = masquerade;
    this.#logger = logger;
  }

  /** This node is reached in another way than before. */
  endsChanged(ends: readonly OwnEnd[]): void {
    this.#unwritten = subnetEnv({ networks: this.#networks, ends, masquerade: this.#masquerade });
    this.retry();
  }

  /** Writes what could not be written before. */
  retry(): void {
    if (this.#unwritten === undefined) return;
    try {
      placeSubnetEnv(this.#path, this.#unwritten);
      this.#unwritten = undefined;
      this.#lastProblem = undefined;
      this.#logger.info({ path: this.#path }, 'File for the CNI plugins of flannel is in place');
    } catch (error) {
      if (!(error instanceof NodeplaneError)) throw error;
      if (error.message !== this.#lastProblem)
        this.#logger.error({ err: error }, 'CNI plugins of flannel do not learn the network of this node');
      this.#lastProblem = error.message;
    }
  }
}

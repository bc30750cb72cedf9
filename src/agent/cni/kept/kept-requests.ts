import { CNI_ERROR } from '../../../cni/index.ts';
import { errorText } from '../../../core/index.ts';
import type { Logger } from '../../logger.ts';
import type { PluginAnswer, PluginRequest } from '../server/protocol.ts';
import type { SetAsideReason } from './set-aside.ts';
import type { KeptRequest, Spool } from './spool.ts';

/** A DEL that was kept while no agent ran. */
export interface KeptDelete {
  /** Of its file. */
  readonly name: string;
  readonly request: PluginRequest;
}

export interface KeptRequestsOptions {
  readonly spool: Spool;
  /** Does what a request asks for, without the namespace it names. */
  readonly run: (request: PluginRequest) => Promise<PluginAnswer>;
  readonly logger: Logger;
  /** Called with the reason for which a request will not be tried again. */
  readonly setAside: (reason: SetAsideReason) => void;
}

/** Errors that trying again does not heal. */
const HOPELESS: ReadonlySet<number> = new Set([
  CNI_ERROR.INCOMPATIBLE_VERSION,
  CNI_ERROR.UNSUPPORTED_FIELD,
  CNI_ERROR.INVALID_ENVIRONMENT,
  CNI_ERROR.DECODING_FAILURE,
  CNI_ERROR.INVALID_NETWORK_CONFIG,
]);
/** How often one is tried that ends without an answer: a thread may have died of something else. */
const TRIES = 3;

/**
 * Settles the DELs that were kept while no agent ran, each for itself: one that fails stays for another try, or is set aside
 * when trying again is of no use. Nothing here rejects.
 */
export class KeptRequests {
  readonly #options: KeptRequestsOptions;
  /** How often each was tried in vain, by its file. */
  readonly #tries = new Map<string, number>();

  constructor(options: KeptRequestsOptions) {
    this.#options = options;
  }

  /** The oldest first. What is no DEL is set aside; what cannot be read now counts as a try. */
  pending(): KeptDelete[] {
    return this.#list().flatMap(({ name, content }) => {
      if (content.kind === 'request') return [{ name, request: content.request }];
      if (content.forGood) this.#setAside(name, 'unreadable', content.reason);
      else this.#failed(name, content.reason);
      return [];
    });
  }

  /** Does what one asks for, if it is still there. */
  async settle({ name, request }: KeptDelete): Promise<void> {
    const { spool, run, logger } = this.#options;
    const { CNI_CONTAINERID: container, CNI_IFNAME: ifname } = request.environment;
    if (!spool.has(name)) return;
    try {
      // Its path may name another pod's namespace by now. What is to be removed is found without it.
      const answer = await run({ ...request, environment: { ...request.environment, CNI_NETNS: '' } });
      if (answer.exitCode === 0) {
        spool.remove(name);
        this.#tries.delete(name);
        logger.info({ container, ifname }, 'CNI DEL settled that was asked for while no agent ran');
        return;
      }
      const { code } = JSON.parse(answer.stdout) as { code: number };
      if (HOPELESS.has(code)) this.#setAside(name, 'refused', answer.stdout, { container, ifname });
      else logger.error({ container, ifname, error: answer.stdout }, 'A kept CNI DEL failed; kept for another try');
    } catch (error) {
      this.#failed(name, errorText(error), { container, ifname });
    }
  }

  /**
   * Settles the earlier DELs of an attachment that is about to be made again. One that cannot be settled now must not be
   * later either: it would take away the new one.
   */
  async settleBefore({ CNI_CONTAINERID: container, CNI_IFNAME: ifname }: PluginRequest['environment']): Promise<void> {
    for (const { name, content } of this.#list()) {
      if (content.kind !== 'request') continue;
      const { request } = content;
      const { CNI_CONTAINERID, CNI_IFNAME } = request.environment;
      if (CNI_CONTAINERID !== container || CNI_IFNAME !== ifname) continue;
      await this.settle({ name, request });
      if (!this.#options.spool.has(name)) continue;
      this.#setAside(name, 'superseded', 'The same container was attached again before this could be settled');
    }
  }

  #list(): KeptRequest[] {
    const { spool, logger } = this.#options;
    try {
      return spool.list();
    } catch (error) {
      logger.error({ err: error, directory: spool.directory }, 'The kept CNI requests cannot be looked through');
      return [];
    }
  }

  #failed(name: string, reason: string, facts: object = {}): void {
    const tries = (this.#tries.get(name) ?? 0) + 1;
    this.#tries.set(name, tries);
    if (tries >= TRIES) {
      this.#setAside(name, 'failed', `Tried ${tries} times, at last: ${reason}`, facts);
      return;
    }
    const { logger } = this.#options;
    logger.error({ ...facts, file: name, error: reason }, 'A kept CNI request cannot be settled; kept for another try');
  }

  #setAside(name: string, kind: SetAsideReason, reason: string, facts: object = {}): void {
    const { spool, logger, setAside } = this.#options;
    this.#tries.delete(name);
    try {
      const file = spool.setAside(name, reason.trim());
      setAside(kind);
      const what = 'A kept CNI request cannot be settled; set aside. What its pod left may have to be removed by hand';
      logger.error({ ...facts, file, reason: reason.trim() }, what);
    } catch (error) {
      logger.error({ ...facts, err: error, file: name, reason }, 'A kept CNI request cannot be settled nor set aside');
    }
  }
}

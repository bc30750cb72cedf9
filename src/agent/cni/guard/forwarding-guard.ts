import { isForwarding, loadLinkDrift } from '../../../cni/index.ts';
import { type Clock, type IpFamily, inBackground, type Timer } from '../../../core/index.ts';
import { LastingTrouble, type Logger } from '../../logger.ts';
import { notedLinks } from './look-at-links.ts';

export interface ForwardingGuardOptions {
  /** Directories of reservations, with the notes about attachments. */
  readonly dataDirs: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

const BETWEEN_LOOKS_MS = 5000;
/**
 * How long it has to be off at least: whoever asks meanwhile is told of it (`nodeplane diff`), and nobody is fought who
 * switches it for a moment.
 */
const GRACE_MS = 3000;
const FAMILIES: readonly IpFamily[] = ['IPv4', 'IPv6'];

/**
 * Has the node forward packets of its pods again when others switch that off, as `sysctl --system` does where a file of a hardened
 * system says `net.ipv4.ip_forward = 0`. Without it no pod reaches anything but its node until the next ADD.
 *
 * A look is two small files; the notes about pods are read only when one of them begins to say no.
 */
export class ForwardingGuard {
  readonly #options: ForwardingGuardOptions;
  /** Families that are off, and that no pod has, while none has come. */
  readonly #unneeded = new Set<IpFamily>();
  #timer: Timer | undefined;
  #stopped = false;
  /** It cannot be switched on. */
  readonly #trouble: LastingTrouble;

  constructor(options: ForwardingGuardOptions) {
    this.#options = options;
    this.#trouble = new LastingTrouble(options.logger);
  }

  /** Looks now, and every few seconds from then on. */
  start(): void {
    inBackground('forwarding of the node', () => this.#look());
  }

  #look(): void {
    let isOff = false;
    try {
      isOff = this.#off().length > 0;
    } finally {
      // Also after one that failed, because no descriptor was free for example.
      if (isOff) this.#later(GRACE_MS, () => this.#mend());
      else this.#later(BETWEEN_LOOKS_MS, () => this.start());
    }
  }

  /** There may be pods with addresses of another family now. */
  podsChanged(): void {
    this.#unneeded.clear();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #later(ms: number, fn: () => void | Promise<void>): void {
    if (this.#stopped) return;
    this.#timer = this.#options.clock.setTimer(() => inBackground('forwarding of the node', fn), ms);
  }

  #off(): IpFamily[] {
    return FAMILIES.filter((family) => !this.#unneeded.has(family) && !isForwarding(family));
  }

  async #mend(): Promise<void> {
    const { dataDirs, logger } = this.#options;
    try {
      const { enableForwarding, forwardedFamilies, wantedLink } = await loadLinkDrift();
      const needed = new Set(notedLinks(dataDirs, wantedLink).flatMap(forwardedFamilies));
      const off = this.#off();
      for (const family of off) if (!needed.has(family)) this.#unneeded.add(family);
      const families = off.filter((family) => needed.has(family));
      if (families.length > 0) {
        enableForwarding(families);
        logger.warn({ families }, 'Somebody switched off that this node forwards packets of its pods; it is on again');
      }
      this.#trouble.over();
    } catch (error) {
      this.#trouble.tell(error, 'This node does not forward packets of its pods, and that cannot be mended');
    }
    this.#later(BETWEEN_LOOKS_MS, () => this.start());
  }
}

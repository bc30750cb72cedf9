import { type Attached, loadReassertion, type PodFeatures, type Reassertion } from '../../cni/index.ts';
import type { Clock, Timer } from '../../core/index.ts';
import { type Link, listLinks, Netlink, Nftables, type NftEvent } from '../../netlink/index.ts';
import type { Logger } from '../logger.ts';

export interface FeatureGuardOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Tells what changes in nf_tables of this node, by whomever. */
  readonly watch: (listener: (event: NftEvent) => void) => { close(): void };
}

/** A reload of a firewall is several transactions; what it leaves is looked at when it is done. */
const QUIET_MS = 100;

/**
 * Brings back the masquerade, port mappings and firewall admission of pods when others flush nf_tables, as a reload of
 * firewalld or `nft flush ruleset` does.
 *
 * What the pods have is told by the agent's own threads and read from the kernel after each change. When something is
 * missing although the pod's link is still there, nobody has detached the pod: it was flushed. So plugins that run beside
 * the agent are no trouble.
 */
export class FeatureGuard {
  readonly #options: FeatureGuardOptions;
  #known: PodFeatures = { elements: [], admissions: [] };
  /** The index of each link when that was read: a link of the same name and another index is another attachment. */
  #links: Map<string, number> = new Map();
  #nftables: Nftables | undefined;
  #watch: { close(): void } | undefined;
  #timer: Timer | undefined;
  #checking: Promise<void> = Promise.resolve();

  constructor(options: FeatureGuardOptions) {
    this.#options = options;
  }

  /** Begins to watch. On a kernel without nf_tables there is nothing to guard. */
  async start(): Promise<void> {
    const { watch, logger } = this.#options;
    try {
      this.#nftables = Nftables.open();
      this.#watch = watch((event) => {
        if (event.kind === 'overrun' || (event.kind === 'generation' && !event.own)) this.#schedule();
      });
    } catch (error) {
      logger.debug({ err: error }, 'nf_tables cannot be watched: flushed rules of pods come back with the next pod');
      return;
    }
    await this.check();
  }

  async stop(): Promise<void> {
    this.#watch?.close();
    this.#timer?.cancel();
    await this.#checking;
    this.#nftables?.close();
    this.#nftables = undefined;
  }

  /** Compares what is there with what was, brings back what is missing, and remembers what is there then. */
  check(): Promise<void> {
    this.#checking = this.#checking.then(() => this.#check());
    return this.#checking;
  }

  /**
   * Learns what an attachment has from whoever made it, at once: somebody may flush it before it was read here. It may be
   * flushed by now, so it is looked after in a moment.
   */
  attached({ hostLink, features }: Attached): void {
    this.#links.set(hostLink.name, hostLink.index);
    const { elements, admissions } = this.#known;
    this.#known = {
      elements: [...elements, ...features.elements],
      admissions: [...admissions, ...features.admissions],
    };
    this.#schedule();
  }

  #schedule(): void {
    this.#timer ??= this.#options.clock.setTimer(() => {
      this.#timer = undefined;
      void this.check();
    }, QUIET_MS);
  }

  async #check(): Promise<void> {
    const { logger } = this.#options;
    if (!this.#nftables) return;
    try {
      const { readFeatures, reassertFeatures } = await loadReassertion();
      const links = hostLinks();
      const same = links.filter(({ name, index }) => this.#links.get(name) === index);
      const wanted = stillWanted(this.#known, same);
      const repair = reassertFeatures(this.#nftables, wanted);
      if (hasRepaired(repair)) logger.warn({ ...repair }, 'Rules of pods were flushed by others; they are back');
      this.#known = readFeatures(this.#nftables);
      this.#links = new Map(links.map(({ name, index }) => [name, index]));
    } catch (error) {
      logger.error({ err: error }, 'The rules of pods cannot be looked after');
    }
  }
}

/**
 * The features of pods that are still attached.
 *
 * @param links those of the node: a pod's is named first in the comment of its elements; its alias begins with its network
 */
export function stillWanted(
  { elements, admissions }: PodFeatures,
  links: readonly Pick<Link, 'name' | 'alias'>[],
): PodFeatures {
  const names = new Set(links.map(({ name }) => name));
  const networks = links.flatMap(({ alias }) => (alias.includes('/') ? [alias.slice(0, alias.indexOf('/'))] : []));
  return {
    elements: elements
      .map((set) => ({
        ...set,
        elements: set.elements.filter(({ comment = '' }) => names.has(comment.split(' ')[0]!)),
      }))
      .filter((set) => set.elements.length > 0),
    admissions: admissions.filter(({ comment }) => networks.some((network) => comment.includes(network))),
  };
}

function hostLinks(): Link[] {
  const host = Netlink.openRoute();
  try {
    return listLinks(host);
  } finally {
    host.close();
  }
}

function hasRepaired({ structureRepaired, elementsAdded, admissionRepaired }: Reassertion): boolean {
  return structureRepaired || elementsAdded > 0 || admissionRepaired;
}

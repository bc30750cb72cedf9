import type { KubeProxyConfig } from '../../../config/index.ts';
import { IP_FAMILIES, inBackground, type Timer } from '../../../core/index.ts';
import { closing } from '../../../netlink/index.ts';
import { Nftables } from '../../../netlink/nftables/index.ts';
import { hasRules, NetlinkRouteKernel, RTPROT_NODEPLANE, RULES_TABLE, routesPresent } from '../../../routes/index.ts';
import type { Part, PartContext } from '../../part.ts';

/** Removes them, and nothing else: an agent may run. */
export const REMOVE_LEFT_ROUTES = 'nodeplane cleanup --routes-only';

/** How soon it is seen that they were removed. */
const LOOK_MS = 10_000;

export interface LeftRoutesOptions extends Pick<PartContext, 'clock' | 'logger'> {
  readonly config: Pick<KubeProxyConfig, 'routes'>;
  /** What is there, in words; empty: nothing. @default looks in the kernel */
  readonly look?: () => Promise<string>;
}

/**
 * Of an agent without --routes: what one with --routes has left on this node. Packets follow it, and nobody keeps it right. It is
 * told and not removed: whoever makes the routes from now on may not have begun yet.
 */
export class LeftRoutes implements Part {
  readonly #options: Required<LeftRoutesOptions>;
  #found = '';
  #timer: Timer | undefined;
  #isStopped = false;
  /** Whether the last look failed; it may have been while much changed. */
  #isFailing = false;

  constructor(options: LeftRoutesOptions) {
    this.#options = { look: lookAtRoutes, ...options };
  }

  /** What is there, in words; empty: nothing. */
  found(): string {
    return this.#found;
  }

  start(): void {
    if (!this.#options.config.routes) inBackground('routes left', () => this.#look());
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  async #look(): Promise<void> {
    const { clock, logger, look } = this.#options;
    const before = this.#found;
    try {
      this.#found = await look();
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing) logger.warn({ err: error }, 'Routes of an agent with --routes cannot be looked for');
      this.#isFailing = true;
    }
    if (this.#isStopped) return;
    const present = this.#found;
    if (before === '' && present !== '')
      logger.warn(
        { present, remedy: REMOVE_LEFT_ROUTES },
        'Routes of an agent with --routes are still here, and nobody keeps them right',
      );
    if (before !== '' && present === '') logger.info('The routes of an agent with --routes are gone');
    // Nobody makes more of them.
    if (present === '' && !this.#isFailing) return;
    this.#timer = clock.setTimer(() => this.#look(), LOOK_MS);
  }
}

/** @throws rejects with KernelError, ERR_NETLINK_SOCKET */
async function lookAtRoutes(): Promise<string> {
  const found: string[] = [];
  const devices = new Set<string>();
  for (const family of IP_FAMILIES) {
    const present = await closing(NetlinkRouteKernel.open(family), (kernel) => routesPresent(kernel, family));
    if (present.routes > 0) found.push(`${present.routes} ${family} routes (proto ${RTPROT_NODEPLANE})`);
    // That of WireGuard is of both families.
    for (const name of present.devices) devices.add(name);
  }
  for (const name of devices) found.push(`device ${name}`);
  const { family, name } = RULES_TABLE;
  if (closing(Nftables.open(), hasRules)) found.push(`nftables table ${family} ${name}`);
  return found.join(', ');
}

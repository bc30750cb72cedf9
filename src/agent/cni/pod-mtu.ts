import { isPodLink } from '../../cni/index.ts';
import type { Clock, Timer } from '../../core/index.ts';
import { withNetlink } from '../../netlink/index.ts';
import { type Link, listLinks } from '../../netlink/route/index.ts';
import { NETLINK_ROUTE } from '../../netlink/uapi/index.ts';
import type { Logger } from '../logger.ts';
import type { MtuSource } from '../part.ts';

export interface PodMtuOptions {
  readonly source: MtuSource;
  /** The network whose pods get it. */
  readonly network: string;
  /** Whether the node's pods have IPv6 addresses. */
  readonly hasIpv6: () => boolean;
  readonly clock: Clock;
  readonly logger: Pick<Logger, 'warn'>;
  /** @default the links of this network namespace */
  readonly links?: () => readonly Pick<Link, 'kind' | 'alias' | 'mtu'>[];
}

/** RFC 8200: no IPv6 link may have less. */
const SMALLEST_IPV6_MTU = 1280;
/** The two families learn of a change one after the other; one warning is enough. */
const SETTLE_MS = 1000;

/** What new pods are told about their MTU, and a warning when pods that exist have another one: nothing changes a pod's. */
export class PodMtu {
  readonly #options: PodMtuOptions;
  #timer: Timer | undefined;
  #looked: number | undefined;
  #stopped = false;

  constructor(options: PodMtuOptions) {
    this.#options = options;
    options.source.onMtuChange(() => this.#schedule());
  }

  /** Key `mtu` of the network's configuration; undefined: nobody knows, and the kernel's own is in force. */
  value(): number | undefined {
    const mtu = this.#options.source.mtu();
    return mtu === undefined || !this.#options.hasIpv6() ? mtu : Math.max(mtu, SMALLEST_IPV6_MTU);
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(() => this.#look(), SETTLE_MS);
  }

  #look(): void {
    const { network, logger, links = () => withNetlink(NETLINK_ROUTE, listLinks) } = this.#options;
    const mtu = this.value();
    if (mtu === undefined || mtu === this.#looked) return;
    this.#looked = mtu;
    const others = links().filter((link) => isPodLink(link, network) && link.mtu !== mtu);
    if (others.length === 0) return;
    const have = [...new Set(others.map((link) => link.mtu))].sort((a, b) => a - b);
    logger.warn(
      { mtu, pods: others.length, have: have.slice(0, 10) },
      'Pods have another MTU than the way to other nodes; they keep it until they are made anew',
    );
  }
}

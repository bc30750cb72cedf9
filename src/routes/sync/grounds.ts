import {
  addressBits,
  type Cidr,
  type Drift,
  driftLines,
  formatCidr,
  formatIp,
  type IpAddress,
  type IpFamily,
  networkOf,
} from '../../core/index.ts';
import type { RouteKernel } from '../kernel/route-kernel.ts';
import type { Peer } from '../plan/peer.ts';
import { deviceNames, type RouteSettings, type TunnelDevice, tunnelDevice, tunnelKind } from '../plan/tunnel.ts';
import { type Attachment, noUnderlay, type Underlay } from '../plan/underlay.ts';
import { type SharedTunnel, wireguardDevice } from '../wireguard/shared-tunnel.ts';
import type { Ground } from './kernel-routes.ts';

export interface GroundOptions {
  readonly family: IpFamily;
  readonly settings: RouteSettings;
  /** The interface that leads to the other nodes. @default the one that has the node's address */
  readonly interfaceName?: string | undefined;
  /** What the families share where the tunnel is WireGuard. */
  readonly wireguard?: SharedTunnel | undefined;
  readonly kernel: RouteKernel;
}

/** Reads what the routes of a family rest on: which interface leads to the other nodes, and what it is like. */
export class Grounds {
  readonly #options: GroundOptions;

  constructor(options: GroundOptions) {
    this.#options = options;
  }

  /**
   * What this node is to have now.
   *
   * @param own this node
   * @param serviceRanges of ClusterIPs, of the family
   * @throws ERR_ROUTES when no interface leads to the other nodes, or its packets are too small for a tunnel; KernelError
   */
  async of(own: Peer, serviceRanges: readonly Cidr[]): Promise<Ground> {
    const attachment = this.#attachment(own);
    const { tunnel, wireguardKey } = this.#tunnelOf(own, attachment);
    const underlay = await this.#underlayOf(attachment);
    const { ranges, mac } = own;
    return {
      own: { underlay, ranges, mac, serviceRanges, wireguardKey },
      tunnel,
      deviceNames: deviceNames(this.#options.family),
    };
  }

  /** The largest packet that gets to all other nodes' pods. Throws as `of`. */
  mtu(own: Peer): number {
    const attachment = this.#attachment(own);
    return this.#tunnelOf(own, attachment).tunnel?.mtu ?? attachment.mtu;
  }

  /** In what the way to the other nodes is another than the routes were written for; empty: in nothing. Rejects with KernelError. */
  async drifts({ own: { underlay } }: Ground): Promise<Drift[]> {
    const attachment = this.#find(underlay.address);
    const now = attachment && (await this.#underlayOf(attachment));
    const [before, after] = [wordsOf(underlay), now ? wordsOf(now) : ['no interface has the address']];
    if (before.join() === after.join()) return [];
    // What is meant is what there is now: the routes are those of before.
    return [{ object: 'interface to the other nodes', difference: 'changed', ...driftLines(after, before) }];
  }

  async #underlayOf(attachment: Attachment): Promise<Underlay> {
    return { ...attachment, routed: await this.#options.kernel.routedWithin(attachment) };
  }

  #find(nodeAddress: IpAddress): Attachment | undefined {
    const { interfaceName, kernel } = this.#options;
    const address = interfaceName === undefined ? nodeAddress : undefined;
    return kernel.attachment({ address, interfaceName });
  }

  /** @throws ERR_ROUTES when no interface leads to the other nodes */
  #attachment(own: Peer): Attachment {
    const attachment = this.#find(own.address);
    if (!attachment) throw noUnderlay(this.#options.interfaceName, own.address);
    return attachment;
  }

  /** @throws ERR_ROUTES when the interface's packets are too small for a tunnel */
  #tunnelOf({ ranges, mac }: Peer, attachment: Attachment): { tunnel?: TunnelDevice; wireguardKey?: Uint8Array } {
    const { settings, wireguard } = this.#options;
    switch (tunnelKind(settings)) {
      case undefined:
        return {};
      case 'vxlan':
        return { tunnel: tunnelDevice(settings, attachment, ranges, mac) };
      case 'wireguard': {
        const { publicKey, mtu } = wireguard!.ground(attachment);
        return { tunnel: wireguardDevice(ranges, mtu), wireguardKey: publicKey };
      }
    }
  }
}

/** The largest packet, in bytes, that gets to all other nodes' pods. */
export function mtuOf({ own, tunnel }: Ground): number {
  return tunnel?.mtu ?? own.underlay.mtu;
}

/** What counts of it; not which other addresses it has within the same prefixes, or alone. */
function wordsOf({ name, index, mtu, address, prefixes, routed }: Underlay): string[] {
  const shared = prefixes.filter(({ prefixLength }) => prefixLength < addressBits(address.family));
  const networks = shared.map((one) => formatCidr({ ...one, address: networkOf(one.address, one.prefixLength) }));
  return [
    `${formatIp(address)} dev ${name} (${index}) mtu ${mtu}`,
    ...[...new Set(networks)].sort(),
    ...routed
      .map(formatCidr)
      .sort()
      .map((cidr) => `${cidr} by a gateway`),
  ];
}

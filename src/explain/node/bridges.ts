import { type IpAddress, ipEquals, sameBytes } from '../../core/index.ts';
import type { Netlink } from '../../netlink/index.ts';
import {
  type BridgeListener,
  type BridgeVlan,
  listBridgeListeners,
  listBridgeVlans,
  listNeighbours,
  type Neighbour,
} from '../../netlink/route/index.ts';

/** What the bridges of this node have learned and are told, read when it is asked for and kept for one question. */
export class Bridges {
  readonly #route: Netlink;
  #forwarding: readonly Neighbour[] | undefined;
  #vlans: readonly BridgeVlan[] | undefined;
  #listeners: readonly BridgeListener[] | undefined;

  constructor(route: Netlink) {
    this.#route = route;
  }

  /** By which ports a bridge sends frames to a MAC address: one at most, but for VLANs. */
  forwarding(bridge: number, mac?: Uint8Array): readonly Neighbour[] {
    this.#forwarding ??= listNeighbours(this.#route, { family: 'bridge' });
    return this.#forwarding.filter(({ master, lladdr }) => master === bridge && (!mac || sameBytes(lladdr, mac)));
  }

  /** The VLANs of a bridge's port, or of the bridge itself, where it looks at them. */
  vlansOf(index: number): readonly BridgeVlan[] {
    this.#vlans ??= listBridgeVlans(this.#route);
    return this.#vlans.filter((vlan) => vlan.index === index);
  }

  /** Whether a bridge that sends to listeners alone knows that its port, or the bridge itself, listens to a group of IPv6. */
  listensTo(group: IpAddress, index: number): boolean {
    this.#listeners ??= listBridgeListeners(this.#route);
    return this.#listeners.some((one) => one.index === index && ipEquals(one.group, group));
  }
}

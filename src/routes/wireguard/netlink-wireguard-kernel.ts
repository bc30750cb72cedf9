import { isNotFound, KernelError } from '../../core/index.ts';
import {
  getWireguardInSlices,
  openWireguard,
  type PeerChange,
  setWireguard,
  type WireguardChange,
  type WireguardDevice,
} from '../../netlink/wireguard/index.ts';
import type { DeviceSettings, WireguardKernel } from './wireguard-kernel.ts';

/**
 * The WireGuard devices of the network namespace it is used in. The conversation begins with the first request: only making a
 * device loads the kernel's module.
 */
export class NetlinkWireguardKernel implements WireguardKernel {
  #conversation: ReturnType<typeof openWireguard> | undefined;

  close(): void {
    this.#conversation?.netlink.close();
    this.#conversation = undefined;
  }

  async read(index: number): Promise<WireguardDevice> {
    const { netlink, family } = this.#open();
    return getWireguardInSlices(netlink, family, index);
  }

  configure(index: number, settings: DeviceSettings): void {
    this.#set(index, settings);
  }

  /** All in few messages; what one of the peers is refused for would keep those behind it from being tried. */
  apply(index: number, peers: readonly PeerChange[]): readonly (KernelError | undefined)[] {
    if (!this.#attempt(index, peers)) return peers.map(() => undefined);
    return peers.map((peer) => this.#attempt(index, [peer]));
  }

  #attempt(index: number, peers: readonly PeerChange[]): KernelError | undefined {
    try {
      this.#set(index, { peers });
      return undefined;
    } catch (error) {
      // Without the device none of them can be tried.
      if (error instanceof KernelError && !isNotFound(error)) return error;
      throw error;
    }
  }

  #set(index: number, change: WireguardChange): void {
    const { netlink, family } = this.#open();
    netlink.execute(...setWireguard(family, index, change));
  }

  #open(): ReturnType<typeof openWireguard> {
    this.#conversation ??= openWireguard();
    return this.#conversation;
  }
}

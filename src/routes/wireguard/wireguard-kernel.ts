import type { KernelError } from '../../core/index.ts';
import type { PeerChange, WireguardDevice } from '../../netlink/wireguard/index.ts';

/** What makes a device ours, besides its peers. */
export interface DeviceSettings {
  readonly privateKey?: Uint8Array | undefined;
  /** UDP. */
  readonly port?: number | undefined;
  readonly fwmark?: number | undefined;
}

/** The WireGuard devices of the kernel. */
export interface WireguardKernel {
  /**
   * The device with its peers; nothing else may be asked meanwhile. Rejects with KernelError (`isNotFound`: there is none),
   * ERR_NETLINK_DECODE.
   */
  read(index: number): Promise<WireguardDevice>;
  /** Throws KernelError: EADDRINUSE when the port belongs to another program. */
  configure(index: number, settings: DeviceSettings): void;
  /** Tries all, whatever becomes of those before. For each undefined, or why it was refused. */
  apply(index: number, peers: readonly PeerChange[]): readonly (KernelError | undefined)[];
}

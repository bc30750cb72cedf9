import type { Cidr, IpAddress, KernelError } from '../../core/index.ts';
import type { TunnelDevice } from '../plan/tunnel.ts';
import type { Attachment } from '../plan/underlay.ts';
import type { RouteObject, RouteOperation } from './route-object.ts';

/** `ip link` shows it: what a device of ours is for, and how one is known to be ours. */
export const DEVICE_ALIAS = 'nodeplane: pods on other nodes';

/** A link that has the name of our device. */
export interface PresentDevice {
  readonly index: number;
  readonly name: string;
  /** IFLA_INFO_KIND. */
  readonly kind: string;
  readonly alias: string;
  readonly up: boolean;
  readonly mtu: number;
  readonly mac: Uint8Array;
  /** What it has that no device of ours has and others gave it, in words of `ip link`: `tos 4`, `master 9`. */
  readonly additions: readonly string[];
  /** Undefined: it is no VXLAN device. */
  readonly vxlan: VxlanProperties | undefined;
  /** Its addresses of the family with their prefixes, but for link-local ones. */
  readonly addresses: readonly Cidr[];
}

/** What makes a VXLAN device. */
export interface VxlanProperties {
  readonly vni: number;
  readonly port: number;
  /** Index of the link its packets leave by; 0 for none. */
  readonly link: number;
  readonly local: IpAddress | undefined;
  /** It learns from whoever sends to it where a MAC lives. */
  readonly learning: boolean;
  /** Of outer packets; 0 for the system's default. */
  readonly ttl: number;
}

/** A step that brings a device to what it is to be. */
export type DeviceOperation =
  /** Made down, with `DEVICE_ALIAS`. */
  | { readonly action: 'create'; readonly device: TunnelDevice }
  | { readonly action: 'delete'; readonly index: number }
  /** What is left out stays. */
  | {
      readonly action: 'change';
      readonly index: number;
      readonly mtu?: number;
      readonly mac?: Uint8Array;
      readonly local?: IpAddress;
      readonly learning?: boolean;
      readonly ttl?: number;
    }
  | { readonly action: 'up'; readonly index: number }
  | { readonly action: 'add-address' | 'delete-address'; readonly index: number; readonly address: Cidr };

/** Which of the node's interfaces leads to the other nodes. */
export interface UnderlayChoice {
  /** The node's address in the family. Undefined: the first one of the interface. */
  readonly address: IpAddress | undefined;
  /** Undefined: the one that has the address. */
  readonly interfaceName: string | undefined;
}

/** What is in the kernel about routes to other nodes, in one family. */
export interface RouteKernel {
  /** Whether routes can refer to nexthop objects, and gain by it: IPv4 on Linux 5.3 and newer. */
  readonly usesNexthops: boolean;
  /** The interface that leads to the other nodes; undefined: none has the address. Throws KernelError. */
  attachment(choice: UnderlayChoice): Attachment | undefined;
  /**
   * Parts of its prefixes that others have sent through a gateway, in slices: the interface has a route to each other node.
   * Until it is done nothing else may be asked. Rejects with KernelError.
   */
  routedWithin(attachment: Attachment): Promise<readonly Cidr[]>;
  /** Whatever has this name. Throws KernelError. */
  device(name: string): PresentDevice | undefined;
  /** @throws KernelError; ERR_ROUTES when the VXLAN network belongs to another device */
  changeDevice(operations: readonly DeviceOperation[]): void;
  /**
   * Deletes a device with all that is on it, which takes the kernel a tenth of a second: the event loop runs meanwhile. Until it
   * is done nothing else may be asked. Rejects with KernelError.
   */
  removeDevice(device: Pick<PresentDevice, 'index' | 'name'>): Promise<void>;
  /** Our objects, and all there is on our device, in slices. Until it is done nothing else may be asked. Rejects with KernelError. */
  list(tunnel: number | undefined): Promise<RouteObject[]>;
  /** Tries all, whatever becomes of those before. For each undefined, or why it was refused. */
  apply(operations: readonly RouteOperation[]): readonly (KernelError | undefined)[];
  /** The name of a link; undefined: there is none of this index. Throws KernelError. */
  linkName(index: number): string | undefined;
  /** Calls `changed` when others have changed what may be ours, or what it rests on, until `close`. Throws ERR_NETLINK_SOCKET. */
  watch(changed: () => void): { close(): void };
}
